package strategies

// As finds a capability of a Locker or a Lease: first in the value itself, then in the Locker or Lease that its method
// Unwrap returns, and so on, in the manner of errors.As and http.ResponseController.
//
//	if timed, ok := strategies.As[strategies.Timed](lease); ok {
//
// A method called on the value that As found bypasses the wrappers around it. This is harmless for most wrappers of
// Leases, which can therefore have a method Unwrap. A wrapper of Lockers that changes Acquire must not have an Unwrap,
// because calls of TryAcquire and AcquireAs would bypass the change.
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
