package config

import (
	"bytes"
	"encoding"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"reflect"
	"slices"
	"strconv"
	"strings"
)

// Sources are the layers over the defaults, lowest first.
type Sources struct {
	File  string            // path of a JSON file, empty for none
	Env   []string          // as os.Environ
	Flags map[string]string // by setting, such as "http.addr"; only those that were given
}

// Load lays the sources over the defaults and validates the whole.
func Load(s Sources) (Config, error) {
	c := Default()
	fields := settings(&c)
	if s.File != "" {
		if err := loadFile(s.File, fields); err != nil {
			return c, err
		}
	}
	if err := loadEnv(s.Env, fields); err != nil {
		return c, err
	}
	for _, name := range slices.Sorted(maps.Keys(s.Flags)) {
		f, ok := fields[name]
		if !ok {
			return c, &SettingError{Setting: name, Origin: "a flag", Why: "there is no such setting"}
		}
		if err := setText(f, s.Flags[name]); err != nil {
			return c, &SettingError{Setting: name, Origin: "a flag", Why: err.Error()}
		}
	}
	return c, c.Validate()
}

// settings maps each setting's name to the field that holds it.
func settings(c *Config) map[string]reflect.Value {
	out := map[string]reflect.Value{}
	root := reflect.ValueOf(c).Elem()
	for i := range root.NumField() {
		block := root.Type().Field(i).Tag.Get("json")
		v := root.Field(i)
		for j := range v.NumField() {
			out[block+"."+v.Type().Field(j).Tag.Get("json")] = v.Field(j)
		}
	}
	return out
}

func loadFile(path string, fields map[string]reflect.Value) error {
	body, err := os.ReadFile(path)
	if err != nil {
		why := "cannot be read"
		if errors.Is(err, fs.ErrNotExist) {
			why = "does not exist"
		}
		return &SettingError{Setting: "--config", Origin: path, Why: why}
	}
	var blocks map[string]map[string]json.RawMessage
	d := json.NewDecoder(bytes.NewReader(body))
	if err := d.Decode(&blocks); err != nil {
		return &SettingError{Setting: "--config", Origin: path, Why: "is no JSON of nested objects: " + err.Error()}
	}
	for _, block := range slices.Sorted(maps.Keys(blocks)) {
		for _, key := range slices.Sorted(maps.Keys(blocks[block])) {
			name := block + "." + key
			f, ok := fields[name]
			if !ok {
				return &SettingError{Setting: name, Origin: path, Why: "there is no such setting" + nearest(name, fields)}
			}
			if err := json.Unmarshal(blocks[block][key], f.Addr().Interface()); err != nil {
				return &SettingError{Setting: name, Origin: path, Why: "wants " + kindName(f)}
			}
		}
	}
	return nil
}

// exceptions are the two settings of blocks with a short name in the environment (broker.md).
var exceptions = map[string]string{"NARAD_NODE_ID": "cluster.node_id", "NARAD_DATA_DIR": "storage.data_dir"}

func loadEnv(env []string, fields map[string]reflect.Value) error {
	values := map[string]string{}
	for _, kv := range env {
		if k, v, ok := strings.Cut(kv, "="); ok && strings.HasPrefix(k, "NARAD_") {
			values[k] = v
		}
	}
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		key := "NARAD_" + strings.ToUpper(strings.ReplaceAll(name, ".", "_"))
		if strings.HasPrefix(name, "storage.") {
			key = "" // by file only
		}
		for short, long := range exceptions {
			if long == name {
				key = short
			}
		}
		v, ok := values[key]
		if !ok || key == "" {
			continue
		}
		if err := setText(fields[name], v); err != nil {
			return &SettingError{Setting: name, Origin: key, Why: err.Error()}
		}
	}
	return nil
}

// setText sets a field from text: lists are comma separated.
func setText(f reflect.Value, text string) error {
	if u, ok := f.Addr().Interface().(encoding.TextUnmarshaler); ok {
		return u.UnmarshalText([]byte(text))
	}
	if f.Kind() == reflect.Slice {
		list := reflect.MakeSlice(f.Type(), 0, 4)
		for part := range strings.SplitSeq(text, ",") {
			if part = strings.TrimSpace(part); part == "" {
				continue
			}
			item := reflect.New(f.Type().Elem()).Elem()
			if err := setText(item, part); err != nil {
				return err
			}
			list = reflect.Append(list, item)
		}
		f.Set(list)
		return nil
	}
	return setScalar(f, text)
}

func setScalar(f reflect.Value, text string) error {
	var err error
	switch f.Kind() {
	case reflect.String:
		f.SetString(text)
	case reflect.Bool:
		var b bool
		if b, err = strconv.ParseBool(text); err == nil {
			f.SetBool(b)
		}
	case reflect.Uint64:
		var u uint64
		if u, err = strconv.ParseUint(text, 10, 64); err == nil {
			f.SetUint(u)
		}
	default:
		var n int64
		if n, err = strconv.ParseInt(text, 10, 64); err == nil {
			f.SetInt(n)
		}
	}
	if err != nil {
		return fmt.Errorf("%q is not %s", text, kindName(f))
	}
	return nil
}

func kindName(f reflect.Value) string {
	if _, ok := f.Interface().(Duration); ok {
		return `a duration in quotes, such as "10s"`
	}
	switch f.Kind() {
	case reflect.String:
		return "a string"
	case reflect.Bool:
		return "true or false"
	case reflect.Slice:
		return "a list of " + map[reflect.Kind]string{reflect.String: "strings", reflect.Int: "numbers"}[f.Type().Elem().Kind()]
	default:
		return "a whole number"
	}
}

// nearest names the settings that end in the same key, since a right key in the wrong block is the usual mistake.
func nearest(name string, fields map[string]reflect.Value) string {
	_, key, _ := strings.Cut(name, ".")
	var same []string
	for _, f := range slices.Sorted(maps.Keys(fields)) {
		if strings.HasSuffix(f, "."+key) {
			same = append(same, f)
		}
	}
	if len(same) == 0 {
		return ""
	}
	return "; there is " + strings.Join(same, ", ")
}
