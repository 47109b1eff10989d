// Prints what reflection knows of Kubernetes' API types, as one JSON object:
//
//	kinds  group/version/Kind → type
//	types  type → how Go prints it, and either what it is (a type expression) or its fields
//
// A field is [JSON name, type expression, flags, protobuf number, patch strategy, merge key, where it is embedded].
// Flags: e omitempty, z omitzero.  A type expression is a Go type, in which @type names an entry of types and
// @type! one that has JSON of its own.  Embedded structs are flattened, as JSON flattens them; the last element
// says through which fields, [protobuf number, Go name] each, outermost first.
package main

import (
	"encoding/json"
	"os"
	"reflect"
	"strconv"
	"strings"

	apiextensions "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	kube "k8s.io/client-go/kubernetes/scheme"
	apiregistration "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"
)

type through struct {
	Number int
	Name   string
}

type field struct {
	Name, Type, Flags string
	Number            int
	Strategy, Key     string
	Through           []through
}

func (f field) MarshalJSON() ([]byte, error) {
	var path [][]any
	for _, step := range f.Through {
		path = append(path, []any{step.Number, step.Name})
	}
	return json.Marshal([]any{f.Name, f.Type, f.Flags, f.Number, f.Strategy, f.Key, path})
}

type described struct {
	Go      string  `json:"go"`
	Is      string  `json:"is,omitempty"`
	Message bool    `json:"message,omitempty"` // a list or map that is a protobuf message of its own
	Fields  []field `json:"fields,omitempty"`
}

var (
	types     = map[string]*described{}
	ownJSON   = reflect.TypeFor[json.Unmarshaler]()
	isMessage = reflect.TypeFor[interface{ Marshal() ([]byte, error) }]()
)

func expression(t reflect.Type) string {
	if t.PkgPath() != "" {
		return "@" + describe(t)
	}
	switch t.Kind() {
	case reflect.Pointer:
		return "*" + expression(t.Elem())
	case reflect.Slice:
		if t.Elem().Kind() == reflect.Uint8 {
			return "bytes"
		}
		return "[]" + expression(t.Elem())
	case reflect.Map:
		return "map[" + t.Key().String() + "]" + expression(t.Elem())
	}
	return t.String()
}

func describe(t reflect.Type) string {
	name := t.PkgPath() + "." + t.Name()
	mark := ""
	if reflect.PointerTo(t).Implements(ownJSON) {
		mark = "!"
	}
	if _, known := types[name]; known {
		return name + mark
	}
	said := &described{Go: t.String()}
	types[name] = said
	switch t.Kind() {
	case reflect.Struct:
		said.Fields = fields(t, nil)
	case reflect.Slice:
		said.Is = "[]" + expression(t.Elem())
		if t.Elem().Kind() == reflect.Uint8 {
			said.Is = "bytes"
		}
		said.Message = reflect.PointerTo(t).Implements(isMessage)
	case reflect.Map:
		said.Is = "map[" + t.Key().String() + "]" + expression(t.Elem())
		said.Message = reflect.PointerTo(t).Implements(isMessage)
	default:
		said.Is = t.Kind().String()
	}
	return name + mark
}

func fields(t reflect.Type, path []through) (all []field) {
	for i := range t.NumField() {
		f := t.Field(i)
		tag, tagged := f.Tag.Lookup("json")
		if !f.IsExported() || tag == "-" {
			continue
		}
		name, options, _ := strings.Cut(tag, ",")
		number := protobufNumber(f.Tag.Get("protobuf"))
		if f.Anonymous && (name == "" || !tagged) {
			inner := f.Type
			if inner.Kind() == reflect.Pointer {
				inner = inner.Elem()
			}
			if inner.Kind() == reflect.Struct { // the rest are parts of types with JSON of their own
				all = append(all, fields(inner, append(append([]through{}, path...), through{number, f.Name}))...)
			}
			continue
		}
		if name == "" {
			name = f.Name
		}
		flags := ""
		for option := range strings.SplitSeq(options, ",") {
			switch option {
			case "omitempty":
				flags += "e"
			case "omitzero":
				flags += "z"
			}
		}
		all = append(all, field{
			name, expression(f.Type), flags, number,
			f.Tag.Get("patchStrategy"), f.Tag.Get("patchMergeKey"), path,
		})
	}
	return all
}

func protobufNumber(tag string) int {
	parts := strings.Split(tag, ",")
	if len(parts) < 2 {
		return 0
	}
	number, _ := strconv.Atoi(parts[1])
	return number
}

func main() {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		kube.AddToScheme, apiextensions.AddToScheme, apiregistration.AddToScheme, meta.AddMetaToScheme,
	} {
		if err := add(scheme); err != nil {
			panic(err)
		}
	}
	kinds := map[string]string{}
	for kind, t := range scheme.AllKnownTypes() {
		if kind.Version == runtime.APIVersionInternal {
			continue
		}
		kinds[kind.Group+"/"+kind.Version+"/"+kind.Kind] = strings.TrimSuffix(describe(t), "!")
	}
	out := json.NewEncoder(os.Stdout)
	if err := out.Encode(map[string]any{"kinds": kinds, "types": types}); err != nil {
		panic(err)
	}
}
