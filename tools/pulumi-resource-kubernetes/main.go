// Command pulumi-resource-kubernetes is Pulumi's provider for Kubernetes.
//
// The provider's own main package embeds two files that its repository generates before a release and that its module
// does not contain. The build makes both from the module's sources and lays them over this directory (go build
// -overlay), so that nothing generated is ever in the checkout.
package main

import (
	_ "embed"

	"github.com/pulumi/pulumi-kubernetes/provider/v4/pkg/provider"
	"github.com/pulumi/pulumi-kubernetes/provider/v4/pkg/version"
)

//go:embed schema.json
var schema []byte

//go:embed terraform-mapping.json
var terraformMapping []byte

func main() {
	provider.Serve("kubernetes", version.Version, schema, terraformMapping)
}
