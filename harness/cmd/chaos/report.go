package main

import (
	"github.com/spf13/cobra"

	"narad.example/reports"
)

func reportCommand() *cobra.Command {
	return &cobra.Command{
		Use: "report FOLDER...", Short: "Make the pages of a run or a soak again from its data", Args: cobra.MinimumNArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			for _, dir := range args {
				write := reports.Write
				if reports.IsSoak(dir) {
					write = reports.WriteSoak
				}
				if err := write(dir); err != nil {
					return err
				}
			}
			return nil
		},
	}
}
