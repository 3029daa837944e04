// Command device-selectors evaluates CEL selectors against devices with the library that the scheduler itself uses.
//
// It reads one JSON document from standard input and writes one to standard output; see Request and Answer. It decides
// nothing: it explains a decision of the scheduler, which names neither the device nor the selector that ruled it out.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"

	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/dynamic-resource-allocation/cel"
)

// Request is what is asked: every expression is evaluated against every device.
type Request struct {
	Devices     []Device `json:"devices"`
	Expressions []string `json:"expressions"`
}

// Device is a device as it stands in a ResourceSlice, with the driver that publishes it.
type Device struct {
	Driver string `json:"driver"`
	resourceapi.Device
}

// Answer has one result for each expression, in order.
type Answer struct {
	Results []Result `json:"results"`
}

// Result says what one expression is for the devices: the indices of those that match, and the error for each device
// on which it fails. Invalid is set instead when the expression does not compile.
type Result struct {
	Matches []int          `json:"matches"`
	Errors  map[int]string `json:"errors"`
	Invalid string         `json:"invalid,omitempty"`
}

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run() error {
	var request Request
	if err := json.NewDecoder(os.Stdin).Decode(&request); err != nil {
		return fmt.Errorf("standard input: %w", err)
	}
	// The features that are on by default in this minor version of Kubernetes.
	compiler := cel.GetCompiler(cel.Features{EnableConsumableCapacity: true})
	answer := Answer{Results: make([]Result, 0, len(request.Expressions))}
	for _, expression := range request.Expressions {
		compiled := compiler.CompileCELExpression(expression, cel.Options{})
		answer.Results = append(answer.Results, evaluate(compiled, request.Devices))
	}
	return json.NewEncoder(os.Stdout).Encode(answer)
}

func evaluate(compiled cel.CompilationResult, devices []Device) Result {
	result := Result{Matches: []int{}, Errors: map[int]string{}}
	if compiled.Error != nil {
		result.Invalid = compiled.Error.Detail
		return result
	}
	for index, device := range devices {
		matches, _, err := compiled.DeviceMatches(context.Background(), cel.Device{
			Driver:                   device.Driver,
			AllowMultipleAllocations: device.AllowMultipleAllocations,
			Attributes:               device.Attributes,
			Capacity:                 device.Capacity,
		})
		if err != nil {
			result.Errors[index] = err.Error()
		} else if matches {
			result.Matches = append(result.Matches, index)
		}
	}
	return result
}
