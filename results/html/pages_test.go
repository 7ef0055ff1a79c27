package html

import (
	"bytes"
	"sync"
)

// pages are reports of every kind by name.
var pages = sync.OnceValue(func() map[string][]File {
	hostile := synthetic([]string{`<script>alert("x")</script>`, `a & b's "lock"`, "handoff"}, []int{100}, 1)
	hostile.Warnings = []string{`<img src=x onerror="alert(1)">`}
	hostile.Error = "</style><script>alert(2)</script>"
	return map[string][]File{
		"sweep":   {{"sweep.json", synthetic(ten(), []int{10, 50, 100, 500, 1000}, 1)}},
		"rounds":  {{"rounds.json", synthetic(ten()[:2], []int{200}, 6)}},
		"hostile": {{`<b>"name".json`, hostile}},
		"empty":   {{"empty.json", synthetic(nil, []int{1}, 1)}},
	}
})

// written are they as they are written.
var written = sync.OnceValue(func() map[string]string {
	all := map[string]string{}
	for name, files := range pages() {
		var page bytes.Buffer
		if err := Write(&page, files); err != nil {
			panic(name + ": " + err.Error())
		}
		all[name] = page.String()
	}
	return all
})
