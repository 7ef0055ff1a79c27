package results_test

import (
	"bytes"
	"encoding"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/lockbench/lockbench/internal/testkit/golden"
	"github.com/lockbench/lockbench/internal/words"
	"github.com/lockbench/lockbench/results"
)

// TestSchemaMatchesTypes fails if schema.json differs from the schema generated from the types and their comments.
func TestSchemaMatchesTypes(t *testing.T) {
	w := schemaWriter{comments: map[string]string{}, definitions: map[string]any{}}
	for _, dir := range []string{".", "../workloads"} {
		w.readComments(t, dir)
	}
	document := map[string]any{
		"$schema":     "https://json-schema.org/draft/2020-12/schema",
		"$id":         "https://github.com/lockbench/lockbench/blob/main/results/schema.json",
		"title":       results.Schema,
		"description": "What lockbench measured. Fields may be added within a version.",
		"$ref":        w.of(reflect.TypeFor[results.Report]())["$ref"],
		"$defs":       w.definitions,
	}
	w.definitions["Report"].(object)["properties"].(object)["schema"] = object{"const": results.Schema}
	var encoded bytes.Buffer
	if err := words.WriteJSON(&encoded, "schema", document); err != nil {
		t.Fatal(err)
	}
	golden.Compare(t, "schema.json", encoded.String())
}

type object = map[string]any

type schemaWriter struct {
	comments    map[string]string // by Type or Type.Field
	definitions object
}

func (w schemaWriter) of(t reflect.Type) object {
	switch {
	case t.Kind() == reflect.Pointer:
		return object{"anyOf": []any{w.of(t.Elem()), object{"type": "null"}}}
	case t == reflect.TypeFor[time.Time]():
		return object{"type": "string", "format": "date-time"}
	case t.Implements(reflect.TypeFor[encoding.TextMarshaler]()):
		return w.described(t, object{"type": "string"})
	case t == reflect.TypeFor[results.Leases]():
		return w.described(t, object{"type": []any{"string", "null"}, "contentEncoding": "base64"})
	}
	switch t.Kind() {
	case reflect.Struct:
		w.define(t)
		return object{"$ref": "#/$defs/" + t.Name()}
	case reflect.Slice:
		return object{"type": []any{"array", "null"}, "items": w.of(t.Elem())}
	case reflect.Map:
		return object{"type": []any{"object", "null"}, "additionalProperties": w.of(t.Elem())}
	case reflect.String:
		return object{"type": "string"}
	case reflect.Bool:
		return object{"type": "boolean"}
	case reflect.Float64:
		return object{"type": "number"}
	case reflect.Int, reflect.Int64:
		return object{"type": "integer"}
	}
	panic("no schema for " + t.String())
}

func (w schemaWriter) described(t reflect.Type, schema object) object {
	if comment := w.comments[t.Name()]; comment != "" {
		schema["description"] = comment
	}
	return schema
}

func (w schemaWriter) define(t reflect.Type) {
	if w.definitions[t.Name()] != nil {
		return
	}
	properties, required := object{}, []string{}
	w.definitions[t.Name()] = w.described(t, object{"type": "object", "properties": properties})
	for _, field := range reflect.VisibleFields(t) {
		name, options, _ := strings.Cut(field.Tag.Get("json"), ",")
		if !field.IsExported() || name == "-" {
			continue
		}
		if name == "" {
			panic(t.Name() + "." + field.Name + " has no name in JSON")
		}
		schema := w.of(field.Type)
		if comment := w.comments[t.Name()+"."+field.Name]; comment != "" {
			schema["description"] = comment
		}
		properties[name] = schema
		if !strings.Contains(options, "omit") {
			required = append(required, name)
		}
	}
	if len(required) > 0 {
		w.definitions[t.Name()].(object)["required"] = required
	}
}

// readComments reads the comments of the types in the folder dir, and of the fields of these types.
func (w schemaWriter) readComments(t *testing.T, dir string) {
	t.Helper()
	source := func(f fs.FileInfo) bool { return !strings.HasSuffix(f.Name(), "_test.go") }
	fileset := token.NewFileSet()
	packages, err := parser.ParseDir(fileset, dir, source, parser.ParseComments) //nolint:staticcheck // no build tags here
	if err != nil {
		t.Fatal(err)
	}
	text := func(group *ast.CommentGroup) string { return strings.Join(strings.Fields(group.Text()), " ") }
	for _, p := range packages {
		ast.Inspect(p, func(n ast.Node) bool {
			group, ok := n.(*ast.GenDecl)
			if !ok {
				return true
			}
			for _, s := range group.Specs {
				named, ok := s.(*ast.TypeSpec)
				if !ok {
					continue
				}
				w.comments[named.Name.Name] = text(group.Doc)
				fields, ok := named.Type.(*ast.StructType)
				if !ok {
					continue
				}
				for _, f := range fields.Fields.List {
					for _, name := range f.Names {
						w.comments[named.Name.Name+"."+name.Name] = strings.TrimSpace(text(f.Doc) + " " +
							text(f.Comment))
					}
				}
			}
			return false
		})
	}
}

func schema(t *testing.T) *jsonschema.Schema {
	t.Helper()
	compiled, err := jsonschema.NewCompiler().Compile("schema.json")
	if err != nil {
		t.Fatal(err)
	}
	return compiled
}

func validate(t *testing.T, s *jsonschema.Schema, document string) error {
	t.Helper()
	value, err := jsonschema.UnmarshalJSON(strings.NewReader(document))
	if err != nil {
		t.Fatal(err)
	}
	return s.Validate(value)
}

func TestReportsMatchSchema(t *testing.T) {
	s := schema(t)
	reports := golden.Reports(t, "testdata")
	reports["zeros"] = &results.Report{Runs: []results.Run{{}}}
	for name, report := range reports {
		if err := validate(t, s, encoded(t, report)); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	whole := encoded(t, golden.Report(t, "testdata/normal.json"))
	for _, broken := range []string{
		strings.Replace(whole, `"rounds": 1`, `"rounds": "one"`, 1),
		strings.Replace(whole, results.Schema, "lockbench/report/0", 1),
		strings.Replace(whole, `"window_ns"`, `"window"`, 1),
	} {
		if validate(t, s, broken) == nil {
			t.Error("the schema takes anything")
		}
	}
}
