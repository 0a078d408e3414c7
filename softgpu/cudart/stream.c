/* Streams and events, as far as their calls are not simply forwarded. */
#include "softgpu/cudart/rt.h"

ONE(cudaStreamCreate, (CUstream * stream), CU(cuStreamCreate)(stream, CU_STREAM_DEFAULT))
ONE(cudaEventCreate, (CUevent * event), CU(cuEventCreate)(event, cudaEventDefault))

/* The runtime's types of flags and sizes are narrower than the driver's. */
ONE(cudaMemPoolExportToShareableHandle, (void *handle, void *pool, int type, unsigned flags),
	CU(cuMemPoolExportToShareableHandle)(handle, pool, type, flags))
ONE(cudaMemPoolImportFromShareableHandle, (void **pool, void *handle, int type, unsigned flags),
	CU(cuMemPoolImportFromShareableHandle)(pool, handle, type, flags))

/* `to` and `from` may both be CU_STREAM_LEGACY or the thread's default stream. */
BOTH(cudaStreamCopyAttributes, _ptsz, (CUstream to, CUstream from),
	CU(cuStreamCopyAttributes)(ON(to), ON(from)))
