package main

import (
	"github.com/spf13/cobra"

	"narad.example/reports"
)

func reportCommand() *cobra.Command {
	return &cobra.Command{
		Use: "report RUN-FOLDER...", Short: "Make the pages of a run again from its data", Args: cobra.MinimumNArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			for _, dir := range args {
				if err := reports.Write(dir); err != nil {
					return err
				}
			}
			return nil
		},
	}
}
