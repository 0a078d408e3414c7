/*
 * Chooses the context that a call refers to. A thread's current context is used if the driver has
 * one, so that both APIs can be mixed. Otherwise it is the primary context of the thread's device,
 * which is retained once for the process and made current at the first call that needs it.
 */
#include <string.h>

#include "softgpu/cudart/rt.h"

static struct {
	pthread_mutex_t lock;
	struct {
		CUcontext context; /* NULL: not retained */
		unsigned generation;
	} primary[RT_DEVICE_MAX]; /* guarded by lock */
} contexts = {.lock = PTHREAD_MUTEX_INITIALIZER};

static _Thread_local struct {
	int device;
	/* a primary context that the runtime made current, with its device and generation */
	CUcontext bound;
	int bound_device;
	unsigned bound_generation;
} thread;

int rt_check_device(int device)
{
	int count = 0, error = rt_driver_init();

	if (!error)
		error = CU(cuDeviceGetCount)(&count);
	if (!error && (device < 0 || device >= count || device >= RT_DEVICE_MAX))
		error = cudaErrorInvalidDevice;
	return error;
}

/*
 * Retains a primary context. That must not be recorded in or refused by a stream capture, so the
 * capture mode is relaxed meanwhile.
 */
static int retain(int device, CUcontext *ret)
{
	int mode = CU_STREAM_CAPTURE_MODE_RELAXED, error;

	(void)CU(cuThreadExchangeStreamCaptureMode)(&mode);
	error = CU(cuDevicePrimaryCtxRetain)(ret, device);
	(void)CU(cuThreadExchangeStreamCaptureMode)(&mode);
	return error;
}

int rt_primary(int device, CUcontext *ret)
{
	int error = rt_check_device(device);

	if (error)
		return error;
	pthread_mutex_lock(&contexts.lock);
	if (!contexts.primary[device].context)
		error = retain(device, &contexts.primary[device].context);
	if (!error)
		*ret = contexts.primary[device].context;
	pthread_mutex_unlock(&contexts.lock);
	return error;
}

static int bind(int device)
{
	CUcontext context;
	int error = rt_primary(device, &context);

	if (!error)
		error = CU(cuCtxSetCurrent)(context);
	if (error)
		return error;
	pthread_mutex_lock(&contexts.lock);
	thread.bound = context;
	thread.bound_device = device;
	thread.bound_generation = contexts.primary[device].generation;
	pthread_mutex_unlock(&contexts.lock);
	return 0;
}

/* Returns whether the current context is one of the runtime's that has been reset since. */
static bool is_stale(CUcontext current)
{
	bool stale;

	if (current != thread.bound)
		return false;
	pthread_mutex_lock(&contexts.lock);
	stale = thread.bound_generation != contexts.primary[thread.bound_device].generation;
	pthread_mutex_unlock(&contexts.lock);
	return stale;
}

int rt_current(CUcontext *ret)
{
	CUcontext current = NULL;
	int error = rt_driver_init();

	if (!error)
		error = CU(cuCtxGetCurrent)(&current);
	if (!error && (!current || is_stale(current))) {
		error = bind(thread.device);
		current = thread.bound;
	}
	if (!error)
		*ret = current;
	return error;
}

int rt_enter(void)
{
	CUcontext context;

	return rt_current(&context);
}

API int cudaSetDevice(int device)
{
	int error = rt_check_device(device);

	if (!error) {
		thread.device = device;
		error = bind(device);
	}
	return rt_done(error);
}

API int cudaInitDevice(int device, unsigned device_flags, unsigned flags)
{
	CUcontext context;
	int error = rt_check_device(device);

	if (!error && flags & ~(unsigned)cudaInitDeviceFlagsAreValid)
		error = cudaErrorInvalidValue;
	if (!error && flags)
		error = CU(cuDevicePrimaryCtxSetFlags_v2)(
			device, device_flags & ~(unsigned)cudaDeviceMapHost);
	return rt_done(error ? error : rt_primary(device, &context));
}

/*
 * Returns the device of a context that the driver API made current, or the one that was set. For a
 * context of the runtime the driver is not asked, since an error may have ended it.
 */
static int current_device(int *ret)
{
	CUcontext current = NULL;
	int error = rt_driver_init();

	if (!error)
		error = CU(cuCtxGetCurrent)(&current);
	if (error)
		return error;
	if (!current || is_stale(current))
		*ret = thread.device;
	else if (current == thread.bound)
		*ret = thread.bound_device;
	else
		error = CU(cuCtxGetDevice)(ret);
	return error;
}

API int cudaGetDevice(int *device)
{
	return rt_done(device ? current_device(device) : cudaErrorInvalidValue);
}

/* Sets the devices to try. Programs try them in turn, so the first that works is used. */
API int cudaSetValidDevices(int *devices, int count)
{
	int error = rt_driver_init();

	if (!error && (!devices || count < 0))
		error = cudaErrorInvalidValue;
	for (int i = 0; !error && i < count; i++)
		error = rt_check_device(devices[i]);
	if (!error && count > 0)
		thread.device = devices[0];
	return rt_done(error);
}

API int cudaSetDeviceFlags(unsigned flags)
{
	int error = rt_check_device(thread.device);

	if (!error)
		error = CU(cuDevicePrimaryCtxSetFlags_v2)(
			thread.device, flags & ~(unsigned)cudaDeviceMapHost);
	return rt_done(error);
}

/* The flag cudaDeviceMapHost is always set, since host memory can always be mapped. */
API int cudaGetDeviceFlags(unsigned *flags)
{
	int active, error = flags ? rt_check_device(thread.device) : cudaErrorInvalidValue;

	if (!error)
		error = CU(cuDevicePrimaryCtxGetState)(thread.device, flags, &active);
	if (!error)
		*flags |= cudaDeviceMapHost;
	return rt_done(error);
}

API int cudaDeviceReset(void)
{
	CUcontext context;
	int device, error = current_device(&device);

	if (error)
		return rt_done(error);
	pthread_mutex_lock(&contexts.lock);
	context = device < RT_DEVICE_MAX ? contexts.primary[device].context : NULL;
	if (context) {
		contexts.primary[device].context = NULL;
		contexts.primary[device].generation++;
	}
	pthread_mutex_unlock(&contexts.lock);
	if (context) {
		(void)CU(cuDevicePrimaryCtxRelease_v2)(device);
		error = CU(cuDevicePrimaryCtxReset_v2)(device);
		(void)CU(cuCtxSetCurrent)(NULL);
	}
	rt_error_reset();
	return rt_done(error);
}
