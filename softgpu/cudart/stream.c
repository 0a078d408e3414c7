/* Streams and events, where a call is not simply the driver's. */
#include "softgpu/cudart/rt.h"

ONE(cudaStreamCreate, (CUstream * stream), CU(cuStreamCreate)(stream, CU_STREAM_DEFAULT))
ONE(cudaEventCreate, (CUevent * event), CU(cuEventCreate)(event, cudaEventDefault))

/* Flags and sizes are narrower than the driver's. */
ONE(cudaMemPoolExportToShareableHandle, (void *handle, void *pool, int type, unsigned flags),
	CU(cuMemPoolExportToShareableHandle)(handle, pool, type, flags))
ONE(cudaMemPoolImportFromShareableHandle, (void **pool, void *handle, int type, unsigned flags),
	CU(cuMemPoolImportFromShareableHandle)(pool, handle, type, flags))

/* CU_STREAM_LEGACY and the thread's own can be either of the two. */
BOTH(cudaStreamCopyAttributes, _ptsz, (CUstream to, CUstream from),
	CU(cuStreamCopyAttributes)(ON(to), ON(from)))
