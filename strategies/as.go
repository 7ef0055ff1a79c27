package strategies

// As finds a capability of a Locker or a Lease: first in the value itself, then in the Locker
// or Lease that its method Unwrap returns, and so on, as errors.As and
// http.ResponseController do.
//
//	if timed, ok := strategies.As[strategies.Timed](lease); ok {
//
// The caller then calls the value that As found directly, without the wrappers around it. A wrapper of Leases can
// therefore nearly always have an Unwrap method. A wrapper of Lockers that changes Acquire must have none, because
// TryAcquire and AcquireAs would bypass it.
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
