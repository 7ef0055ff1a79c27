package command

const intro = `lockbench measures Redis distributed locks: it lets many clients fight for one lock by several
strategies and shows how fast each was, who waited, who starved, what Redis paid, and whether it
really excluded.`

const examples = `  lockbench --strategy spin,pubsub,blpop --clients 500
  lockbench -s 'spin:backoff=fixed,base=5ms,pubsub' --runs 5 -o table -o json=report.json
  LOCKBENCH_REDIS=rediss://user:secret@redis.example:6380 lockbench --strategy pubsub
  lockbench list pubsub`

// usage is cobra's usage without its repetitions, 100 columns wide, with the environment
// and the exit codes.
const usage = `Usage:
  {{.UseLine}}{{if .HasAvailableSubCommands}}
  {{.CommandPath}} COMMAND{{end}}{{if .HasExample}}

Examples:
{{.Example}}{{end}}{{if .HasAvailableSubCommands}}

Commands:{{range .Commands}}{{if or .IsAvailableCommand (eq .Name "help")}}
  {{rpad .Name .NamePadding}} {{.Short}}{{end}}{{end}}{{end}}{{if .HasAvailableLocalFlags}}

Flags:
{{.LocalFlags.FlagUsagesWrapped 100 | trimTrailingWhitespaces}}{{end}}{{if or (eq .Name "run") (not .HasParent)}}

Environment:
  LOCKBENCH_CLIENTS=500 stands in for --clients 500, and so on for every flag: upper case, with _
  for -. Flags go before variables. NO_COLOR turns colours off.

Exit codes:
  0    measured, nothing wrong        105  interrupted, results so far are written
  99   a threshold was crossed        130  interrupted, and not written: before there were
  104  bad flags or configuration          results, twice, or 2 s after SIGTERM
  110  a regression (compare, ab)     111  a guarantee a strategy claims did not hold
  113  Redis unreachable              112  figures that cannot be trusted
  1    anything else{{end}}
`
