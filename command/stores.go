package command

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/lockbench/lockbench"
	"github.com/lockbench/lockbench/internal/store"
)

// stores hold what the flags say about each store.
type stores struct {
	redis  *lockbench.StoreOptions
	others map[string]lockbench.StoreOptions // by name; nil if only Redis is allowed
}

// change changes the options of a store.
func (s stores) change(name string, change func(*lockbench.StoreOptions)) {
	if name == store.Redis {
		change(s.redis)
		return
	}
	options := s.others[name]
	change(&options)
	s.others[name] = options
}

// addresses is the value of --redis: one address for each store. The servers of one topology
// are in one address.
func (s stores) addresses() *value {
	given := map[string]bool{}
	v := textValue("url", &s.redis.Address)
	v.set = func(address string) error {
		name, err := store.At(address)
		if err != nil {
			return err
		}
		if given[name] {
			return errors.New("it is given more than once: it takes the nodes of one topology, with commas in between")
		}
		given[name] = true
		if name != store.Redis && s.others == nil {
			return fmt.Errorf("it takes a Redis, not %s", name)
		}
		s.change(name, func(o *lockbench.StoreOptions) { o.Address = address })
		return nil
	}
	return v
}

// topologies is the value of --topology: that of Redis and, as NAME:N, those of other
// stores, separated by commas.
func (s stores) topologies() *value {
	v := textValue("form", &s.redis.Topology)
	v.set = func(text string) error {
		given := map[string]bool{}
		for form := range strings.SplitSeq(text, ",") {
			name, _, _ := strings.Cut(form, ":")
			if !slices.Contains(store.Names(), name) {
				name = store.Redis
			}
			if given[name] {
				return fmt.Errorf("%q has two topologies of %s", text, name)
			}
			given[name] = true
			if name != store.Redis && s.others == nil {
				return fmt.Errorf("it takes a topology of Redis, not of %s", name)
			}
			s.change(name, func(o *lockbench.StoreOptions) { o.Topology = form })
		}
		return nil
	}
	return v
}

func (s stores) durability() *value {
	v := textValue("class", &s.redis.Durability)
	v.set = func(text string) error {
		if _, err := store.ParseDurability(text); err != nil {
			return err
		}
		s.redis.Durability = text
		return nil
	}
	return v
}

// complete gives the other stores the options that apply to all stores.
func (s stores) complete() map[string]lockbench.StoreOptions {
	for _, name := range store.Names() {
		if name == store.Redis {
			continue
		}
		s.change(name, func(o *lockbench.StoreOptions) {
			o.Durability, o.AllowFaults, o.Pin = s.redis.Durability, s.redis.AllowFaults, s.redis.Pin
			switch {
			case o.Address != "":
				o.CAFile = s.redis.CAFile
			case s.redis.Address == "container", s.redis.Address == "process":
				o.Address = s.redis.Address
			}
		})
	}
	return maps.Clone(s.others)
}
