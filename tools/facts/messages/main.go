// Writes objects as Kubernetes' protobuf: goldens for the reader in setpoint.server.registry.protobuf.
//
// Reads JSON objects, one to a line.  An object that has nothing but kind and apiVersion is filled: every field of
// it gets a value.  Writes for each a line of JSON: the object, as Go writes it, and its protobuf in base64.
package main

import (
	"bufio"
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"os"
	"reflect"
	"time"

	apiextensions "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
	"k8s.io/apimachinery/pkg/util/intstr"
	kube "k8s.io/client-go/kubernetes/scheme"
	apiregistration "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"
)

const deepest = 2 // how often a type may hold itself

var filled = map[reflect.Type]func(n int) any{
	reflect.TypeFor[meta.Time]():      func(n int) any { return meta.Unix(int64(n)*1000, 0) },
	reflect.TypeFor[meta.MicroTime](): func(n int) any { return meta.NewMicroTime(time.UnixMicro(int64(n) * 1000001)) },
	reflect.TypeFor[resource.Quantity](): func(n int) any {
		return resource.MustParse(fmt.Sprintf("%dMi", n))
	},
	reflect.TypeFor[intstr.IntOrString](): func(n int) any {
		if n%2 == 0 {
			return intstr.FromInt32(int32(n))
		}
		return intstr.FromString(fmt.Sprintf("%d%%", n))
	},
	reflect.TypeFor[runtime.RawExtension](): func(n int) any {
		return runtime.RawExtension{Raw: fmt.Appendf(nil, `{"n":%d}`, n)}
	},
	reflect.TypeFor[meta.FieldsV1]():      func(n int) any { return meta.FieldsV1{Raw: []byte(`{"f:a":{}}`)} },
	reflect.TypeFor[apiextensions.JSON](): func(n int) any { return apiextensions.JSON{Raw: fmt.Appendf(nil, "%d", n)} },
	reflect.TypeFor[apiextensions.JSONSchemaPropsOrStringArray](): func(n int) any {
		return apiextensions.JSONSchemaPropsOrStringArray{Property: []string{"a", "b"}}
	},
	reflect.TypeFor[apiextensions.JSONSchemaPropsOrBool](): func(n int) any {
		return apiextensions.JSONSchemaPropsOrBool{Allows: n%2 == 0}
	},
	reflect.TypeFor[apiextensions.JSONSchemaPropsOrArray](): func(n int) any {
		return apiextensions.JSONSchemaPropsOrArray{JSONSchemas: []apiextensions.JSONSchemaProps{{Type: "string"}}}
	},
}

type filler struct{ n int }

func (f *filler) fill(v reflect.Value, above map[reflect.Type]int) {
	f.n++
	if make, special := filled[v.Type()]; special {
		v.Set(reflect.ValueOf(make(f.n)))
		return
	}
	switch v.Kind() {
	case reflect.Pointer:
		if above[v.Type().Elem()] < deepest {
			v.Set(reflect.New(v.Type().Elem()))
			f.fill(v.Elem(), above)
		}
	case reflect.Struct:
		above[v.Type()]++
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() && v.Type().Field(i).Type != reflect.TypeFor[meta.TypeMeta]() {
				f.fill(v.Field(i), above)
			}
		}
		above[v.Type()]--
	case reflect.Slice:
		if v.Type().Elem().Kind() == reflect.Uint8 {
			v.SetBytes(fmt.Appendf(nil, "bytes %d", f.n))
		} else if above[v.Type().Elem()] < deepest {
			v.Set(reflect.MakeSlice(v.Type(), 1, 1))
			f.fill(v.Index(0), above)
		}
	case reflect.Map:
		if above[v.Type().Elem()] < deepest {
			key, value := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
			key.SetString(fmt.Sprintf("key %d", f.n))
			f.fill(value, above)
			v.Set(reflect.MakeMap(v.Type()))
			v.SetMapIndex(key, value)
		}
	case reflect.String:
		v.SetString(fmt.Sprintf("text %d", f.n))
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int32, reflect.Int64:
		v.SetInt(int64(f.n) * int64(1-f.n%2*2)) // every other one below zero
	case reflect.Float64:
		v.SetFloat(float64(f.n) + 0.5)
	default:
		panic("no value for " + v.Type().String())
	}
}

func main() {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		kube.AddToScheme, apiextensions.AddToScheme, apiregistration.AddToScheme,
	} {
		if err := add(scheme); err != nil {
			panic(err)
		}
	}
	writer := protobuf.NewSerializer(scheme, scheme)
	lines := bufio.NewScanner(os.Stdin)
	lines.Buffer(nil, 1<<24)
	out := json.NewEncoder(os.Stdout)
	for lines.Scan() {
		var asked map[string]any
		var named meta.TypeMeta
		if err := json.Unmarshal(lines.Bytes(), &asked); err != nil {
			panic(err)
		}
		if err := json.Unmarshal(lines.Bytes(), &named); err != nil {
			panic(err)
		}
		kind := schema.FromAPIVersionAndKind(named.APIVersion, named.Kind)
		object, err := scheme.New(kind)
		if err != nil {
			panic(err)
		}
		if len(asked) > 2 {
			if err := json.Unmarshal(lines.Bytes(), object); err != nil {
				panic(err)
			}
		} else {
			(&filler{}).fill(reflect.ValueOf(object).Elem(), map[reflect.Type]int{})
		}
		object.GetObjectKind().SetGroupVersionKind(kind)
		var message bytes.Buffer
		if err := writer.Encode(object, &message); err != nil {
			panic(err)
		}
		if err := out.Encode(map[string]any{
			"object": object, "protobuf": base64.StdEncoding.EncodeToString(message.Bytes()),
		}); err != nil {
			panic(err)
		}
	}
}
