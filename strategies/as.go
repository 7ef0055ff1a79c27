package strategies

// As finds a capability of a Locker or a Lease: that of the value itself, else that of what
// its method Unwrap, which returns a Locker or a Lease, says it wraps, and so on, as
// errors.As and http.ResponseController do.
//
//	if timed, ok := strategies.As[strategies.Timed](lease); ok {
//
// The innermost one's capabilities are used past all that wrap it. So a wrapper of Leases
// can nearly always have an Unwrap. A wrapper of Lockers that does something of its own in
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
