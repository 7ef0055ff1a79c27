package doctor

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/lockbench/lockbench"
	"github.com/lockbench/lockbench/internal/apps/document"
	"github.com/lockbench/lockbench/internal/testkit/redistest"
	"github.com/lockbench/lockbench/strategies"
	"github.com/lockbench/lockbench/strategies/polled"
	"github.com/lockbench/lockbench/strategies/redisson"
)

func init() { strategies.RegisterStrategy(append(polled.Strategies(), redisson.Strategies()...)...) }

func TestAnInterruptIsAnError(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	d, err := Run(ctx, lockbench.StoreOptions{Address: redistest.Start(t).URL()})
	if d == nil || !errors.Is(err, context.Canceled) {
		t.Errorf("it ended with %v and %v", d, err)
	}
}

// named is the symptom of a name.
func named(t *testing.T, d *Document, name string) Symptom {
	t.Helper()
	at := slices.IndexFunc(d.Symptoms, func(s Symptom) bool { return s.Name == name })
	if at < 0 {
		t.Fatalf("there is no symptom %q in %+v", name, d.Symptoms)
	}
	return d.Symptoms[at]
}

func TestAServerIsLookedAt(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t, "--maxmemory", "100mb", "--maxmemory-policy", "allkeys-lru", "--maxclients", "500",
		"--save", "3600 1")
	d, err := Run(t.Context(), lockbench.StoreOptions{Address: server.URL()})
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, s := range d.Symptoms {
		names = append(names, s.Name)
		if len(s.Says) == 0 {
			t.Errorf("%s says nothing", s.Name)
		}
	}
	const want = "reachable server rights limits counters memory snapshots machine"
	if strings.Join(names, " ") != want {
		t.Errorf("looked at are %v, want %s", names, want)
	}
	if bad := d.In(Trouble); len(bad) > 0 {
		t.Errorf("%v are in trouble: %+v", bad, d.Symptoms)
	}
	for name, want := range map[string]string{
		"memory": "allkeys-lru", "limits": "of 500 connections", "snapshots": "save 3600 1",
	} {
		s := named(t, d, name)
		if s.State != Note || !strings.Contains(s.Says[0], want) || len(s.Next) == 0 {
			t.Errorf("%s is %+v, want a note of %q", name, s, want)
		}
	}
	if s := named(t, d, "rights"); s.State != Well || strings.HasPrefix(s.Says[0], "0 of") {
		t.Errorf("rights are %+v", s)
	}
}

func TestARightThatIsMissingIsTold(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	acl := []any{"ACL", "SETUSER", "poor", "on", ">secret", "~*", "&*", "+@all", "-eval", "-evalsha", "-config"}
	if err := server.Client(t).Do(t.Context(), acl...).Err(); err != nil {
		t.Fatal(err)
	}
	d, err := Run(t.Context(), lockbench.StoreOptions{Address: "redis://poor:secret@" + server.Addr})
	if err != nil {
		t.Fatal(err)
	}
	s := named(t, d, "rights")
	if s.State != Trouble || len(s.Next) == 0 || !strings.Contains(strings.Join(s.Says, "; "), "+config|get") {
		t.Errorf("rights are %+v", s)
	}
}

func TestWithoutAServerThereIsADocument(t *testing.T) {
	t.Parallel()
	d, err := Run(t.Context(), lockbench.StoreOptions{Address: "redis://127.0.0.1:1"})
	if !errors.Is(err, lockbench.ErrUnreachable) {
		t.Errorf("the error is %v", err)
	}
	if s := named(t, d, "reachable"); s.State != Trouble || d.Redis.Source != "address" {
		t.Errorf("it is %+v", d)
	}
	named(t, d, "machine")
}

func TestOnlyAnAddressCanBeLookedAt(t *testing.T) {
	t.Parallel()
	for address, want := range map[string]string{
		"": "give the address", "auto": "must be the address", "process": "must be the address",
		"http://127.0.0.1:6379": "unix://", "redis://127.0.0.1:6379": "",
	} {
		err := Validate(lockbench.StoreOptions{Address: address})
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", address, err, want)
		}
	}
}

func TestItIsWrittenForPeopleAndPrograms(t *testing.T) {
	t.Parallel()
	d := &Document{Head: document.Head{Schema: schema}, Symptoms: []Symptom{
		{Name: "memory", State: Well, Says: []string{"1.0 MB used"}},
		{
			Name: "rights", State: Trouble,
			Says: []string{strings.Repeat("refused ", 14), "no +info"}, Next: []string{"allow +eval"},
		},
	}}
	var table, encoded bytes.Buffer
	if err := errors.Join(document.WriteTable(&table, d, 120, true), document.WriteJSON(&encoded, d)); err != nil {
		t.Fatal(err)
	}
	want := "memory     ok: 1.0 MB used\n\x1b[1;31m!rights    \x1b[0mtrouble: " +
		strings.TrimSpace(strings.Repeat("refused ", 12)) + `
           refused refused
           no +info
           next: allow +eval
`
	if table.String() != want {
		t.Errorf("it reads\n%s\nwant\n%s", table.String(), want)
	}
	var back Document
	err := json.Unmarshal(encoded.Bytes(), &back)
	if err != nil || back.Schema != "lockbench/doctor/1" || len(back.Symptoms) != 2 {
		t.Errorf("in JSON (%v) it is\n%s", err, encoded.String())
	}
}
