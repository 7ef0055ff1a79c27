package strategies

// As finds a capability of a Locker or a Lease: first in the value itself, then in the Locker
// or Lease that its method Unwrap returns, and so on, as errors.As and
// http.ResponseController do.
//
//	if timed, ok := strategies.As[strategies.Timed](lease); ok {
//
// As calls past all wrappers around the value that it finds. So a wrapper of Leases can
// nearly always have an Unwrap. A wrapper of Lockers that does something of its own in
// Acquire must have none: TryAcquire and AcquireAs would be called without it.
func As[T any](of any) (T, bool) {
	for {
		if found, ok := of.(T); ok {
			return found, true
		}
		switch wrapper := of.(type) {
		case interface{ Unwrap() Lease }:
			of = wrapper.Unwrap()
		case interface{ Unwrap() Locker }:
			of = wrapper.Unwrap()
		default:
			var none T
			return none, false
		}
	}
}
