// Command collector is an OpenTelemetry Collector of the parts that weir's
// tests and examples need: an OTLP receiver (gRPC and HTTP), the batch
// processor, and exporters to the log, to OTLP and to a file. It is a module of
// its own, so that nothing of it is weir's.
package main

import (
	"errors"
	"os"

	"github.com/open-telemetry/opentelemetry-collector-contrib/exporter/fileexporter"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/confmap"
	"go.opentelemetry.io/collector/confmap/provider/envprovider"
	"go.opentelemetry.io/collector/confmap/provider/fileprovider"
	"go.opentelemetry.io/collector/confmap/provider/yamlprovider"
	"go.opentelemetry.io/collector/exporter"
	"go.opentelemetry.io/collector/exporter/debugexporter"
	"go.opentelemetry.io/collector/exporter/otlpexporter"
	"go.opentelemetry.io/collector/otelcol"
	"go.opentelemetry.io/collector/processor"
	"go.opentelemetry.io/collector/processor/batchprocessor"
	"go.opentelemetry.io/collector/receiver"
	"go.opentelemetry.io/collector/receiver/otlpreceiver"
	"go.opentelemetry.io/collector/service/telemetry/otelconftelemetry"
)

func main() {
	command := otelcol.NewCommand(otelcol.CollectorSettings{
		BuildInfo: component.BuildInfo{Command: "collector", Description: "OpenTelemetry Collector for weir's examples", Version: "0.165.0"},
		Factories: parts,
		ConfigProviderSettings: otelcol.ConfigProviderSettings{ResolverSettings: confmap.ResolverSettings{
			ProviderFactories: []confmap.ProviderFactory{envprovider.NewFactory(), fileprovider.NewFactory(), yamlprovider.NewFactory()},
		}},
	})
	if command.Execute() != nil { // which has said why
		os.Exit(1)
	}
}

// parts are what a configuration can name.
func parts() (f otelcol.Factories, err error) {
	var errs [3]error
	f.Telemetry = otelconftelemetry.NewFactory()
	f.Receivers, errs[0] = otelcol.MakeFactoryMap[receiver.Factory](otlpreceiver.NewFactory())
	f.Processors, errs[1] = otelcol.MakeFactoryMap[processor.Factory](batchprocessor.NewFactory())
	f.Exporters, errs[2] = otelcol.MakeFactoryMap[exporter.Factory](debugexporter.NewFactory(), otlpexporter.NewFactory(), fileexporter.NewFactory())
	return f, errors.Join(errs[:]...)
}
