// Package audit is tests of our own locks against what random faults do not find: failovers,
// refused writes, messages told twice, late packets, clock steps. They use a lock as a
// service does and do not depend on how it works. It has no other code.
package audit
