// Command narad stands in for the broker in the backends' tests: it reads the config that a rig writes, is ready, counts its
// starts in its data folder, and ends when it is told to. It asks its peers for their names all the time, on the ports of Raft and of node RPC, and
// what they say now stands in its metrics.
package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"
)

func main() {
	if err := run(os.Args); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(args []string) error {
	if len(args) != 4 || args[1] != "serve" || args[2] != "--config" {
		return fmt.Errorf("usage: narad serve --config FILE")
	}
	var c struct {
		HTTP    struct{ Addr string }
		Cluster cluster
		Storage struct {
			DataDir string `json:"data_dir"`
		}
	}
	body, err := os.ReadFile(args[3])
	if err != nil {
		return err
	}
	if err = json.Unmarshal(body, &c); err != nil {
		return err
	}
	if err = os.MkdirAll(c.Storage.DataDir, 0o755); err != nil {
		return err
	}
	f, err := os.OpenFile(filepath.Join(c.Storage.DataDir, "starts"), os.O_CREATE|os.O_APPEND|os.O_RDWR, 0o644)
	if err != nil {
		return err
	}
	if _, err = f.WriteString("x"); err != nil {
		return err
	}
	info, err := f.Stat()
	if err != nil {
		return err
	}
	fmt.Printf("{\"msg\":\"started\",\"starts\":%d}\n", info.Size())
	http.HandleFunc("/readyz", func(http.ResponseWriter, *http.Request) {})
	http.HandleFunc("/die", func(http.ResponseWriter, *http.Request) { os.Exit(3) })
	http.HandleFunc("/metrics", func(w http.ResponseWriter, r *http.Request) {
		_, password, _ := r.BasicAuth()
		if password == "" || password != os.Getenv("NARAD_ADMIN_PASSWORD") {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		fmt.Fprintf(w, "standin_starts %d\n", info.Size())
		c.Cluster.ask(w)
	})
	http.HandleFunc("GET /v1/remotes", func(w http.ResponseWriter, r *http.Request) {
		if os.Getenv("NARAD_CHAOS_OLDER") != "" {
			http.NotFound(w, r)
			return
		}
		fmt.Fprint(w, `{"remotes":[]}`)
	})
	if len(c.Cluster.Peers) > 0 {
		if err = c.Cluster.serve(); err != nil {
			return err
		}
		go c.Cluster.chat()
	}
	stop := make(chan os.Signal, 1)
	signal.Notify(stop, syscall.SIGTERM)
	go func() {
		<-stop
		fmt.Println(`{"msg":"stopped"}`)
		os.Exit(0)
	}()
	s := http.Server{Addr: c.HTTP.Addr, ReadHeaderTimeout: 5 * time.Second}
	return s.ListenAndServe()
}
