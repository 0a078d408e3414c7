/* Access of devices to each other's memory. */
#include "softgpu/cudart/rt.h"

static int check_two(int a, int b)
{
	int error = rt_check_device(a);

	return error ? error : rt_check_device(b);
}

API int cudaDeviceCanAccessPeer(int *can, int device, int peer)
{
	int error = check_two(device, peer);

	return rt_done(error ? error : CU(cuDeviceCanAccessPeer)(can, device, peer));
}

API int cudaDeviceGetP2PAttribute(int *value, int attribute, int from, int to)
{
	int error = check_two(from, to);

	return rt_done(error ? error : CU(cuDeviceGetP2PAttribute)(value, attribute, from, to));
}

API int cudaDeviceGetP2PAtomicCapabilities(
	unsigned *capabilities, const int *operations, unsigned count, int from, int to)
{
	int error = check_two(from, to);

	return rt_done(error ? error
			     : CU(cuDeviceGetP2PAtomicCapabilities)(
				       capabilities, operations, count, from, to));
}

API int cudaDeviceEnablePeerAccess(int peer, unsigned flags)
{
	CUcontext context;
	int error = rt_enter();

	if (!error)
		error = rt_primary(peer, &context);
	return rt_done(error ? error : CU(cuCtxEnablePeerAccess)(context, flags));
}

API int cudaDeviceDisablePeerAccess(int peer)
{
	CUcontext context;
	int error = rt_enter();

	if (!error)
		error = rt_primary(peer, &context);
	return rt_done(error ? error : CU(cuCtxDisablePeerAccess)(context));
}
