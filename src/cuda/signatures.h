/*
 * Parameters and arguments of every symbol of the CUDA 13.0 driver, in the types of cuda/types.h; what tells the work that it submits from other
 * work, for a hash; and what of memory it reads and writes, if it is a copy or a set (preload/outside/reach.h). All return CUresult. Made by tools/gen-symbols from the toolkit's headers and tools/symbol-classes.txt: do not edit.
 */
#pragma once

#include "cuda/types.h"

// clang-format off

#define TD_SYMBOLS_CUDA_VERSION 13000

#define TD_PARAMS_cuArray3DCreate (void **a0, const void *a1)
#define TD_ARGS_cuArray3DCreate (a0, a1)
#define TD_WORK_cuArray3DCreate (NULL, 0, 0, 0)
#define TD_SPANS_cuArray3DCreate false
#define TD_PARAMS_cuArray3DCreate_v2 (void **a0, const void *a1)
#define TD_ARGS_cuArray3DCreate_v2 (a0, a1)
#define TD_WORK_cuArray3DCreate_v2 (NULL, 0, 0, 0)
#define TD_SPANS_cuArray3DCreate_v2 false
#define TD_PARAMS_cuArray3DGetDescriptor (void *a0, void *a1)
#define TD_ARGS_cuArray3DGetDescriptor (a0, a1)
#define TD_WORK_cuArray3DGetDescriptor (NULL, 0, 0, 0)
#define TD_SPANS_cuArray3DGetDescriptor false
#define TD_PARAMS_cuArray3DGetDescriptor_v2 (void *a0, void *a1)
#define TD_ARGS_cuArray3DGetDescriptor_v2 (a0, a1)
#define TD_WORK_cuArray3DGetDescriptor_v2 (NULL, 0, 0, 0)
#define TD_SPANS_cuArray3DGetDescriptor_v2 false
#define TD_PARAMS_cuArrayCreate (void **a0, const void *a1)
#define TD_ARGS_cuArrayCreate (a0, a1)
#define TD_WORK_cuArrayCreate (NULL, 0, 0, 0)
#define TD_SPANS_cuArrayCreate false
#define TD_PARAMS_cuArrayCreate_v2 (void **a0, const void *a1)
#define TD_ARGS_cuArrayCreate_v2 (a0, a1)
#define TD_WORK_cuArrayCreate_v2 (NULL, 0, 0, 0)
#define TD_SPANS_cuArrayCreate_v2 false
#define TD_PARAMS_cuArrayDestroy (void *a0)
#define TD_ARGS_cuArrayDestroy (a0)
#define TD_WORK_cuArrayDestroy (NULL, 0, 0, 0)
#define TD_SPANS_cuArrayDestroy false
#define TD_PARAMS_cuArrayGetDescriptor (void *a0, void *a1)
#define TD_ARGS_cuArrayGetDescriptor (a0, a1)
#define TD_WORK_cuArrayGetDescriptor (NULL, 0, 0, 0)
#define TD_SPANS_cuArrayGetDescriptor false
#define TD_PARAMS_cuArrayGetDescriptor_v2 (void *a0, void *a1)
#define TD_ARGS_cuArrayGetDescriptor_v2 (a0, a1)
#define TD_WORK_cuArrayGetDescriptor_v2 (NULL, 0, 0, 0)
#define TD_SPANS_cuArrayGetDescriptor_v2 false
#define TD_PARAMS_cuArrayGetMemoryRequirements (void *a0, void *a1, CUdevice a2)
#define TD_ARGS_cuArrayGetMemoryRequirements (a0, a1, a2)
#define TD_WORK_cuArrayGetMemoryRequirements (NULL, 0, 0, 0)
#define TD_SPANS_cuArrayGetMemoryRequirements false
#define TD_PARAMS_cuArrayGetPlane (void **a0, void *a1, unsigned int a2)
#define TD_ARGS_cuArrayGetPlane (a0, a1, a2)
#define TD_WORK_cuArrayGetPlane (NULL, 0, 0, 0)
#define TD_SPANS_cuArrayGetPlane false
#define TD_PARAMS_cuArrayGetSparseProperties (void *a0, void *a1)
#define TD_ARGS_cuArrayGetSparseProperties (a0, a1)
#define TD_WORK_cuArrayGetSparseProperties (NULL, 0, 0, 0)
#define TD_SPANS_cuArrayGetSparseProperties false
#define TD_PARAMS_cuCheckpointProcessCheckpoint (int a0, void *a1)
#define TD_ARGS_cuCheckpointProcessCheckpoint (a0, a1)
#define TD_WORK_cuCheckpointProcessCheckpoint (NULL, 0, 0, 0)
#define TD_SPANS_cuCheckpointProcessCheckpoint false
#define TD_PARAMS_cuCheckpointProcessGetRestoreThreadId (int a0, int *a1)
#define TD_ARGS_cuCheckpointProcessGetRestoreThreadId (a0, a1)
#define TD_WORK_cuCheckpointProcessGetRestoreThreadId (NULL, 0, 0, 0)
#define TD_SPANS_cuCheckpointProcessGetRestoreThreadId false
#define TD_PARAMS_cuCheckpointProcessGetState (int a0, int *a1)
#define TD_ARGS_cuCheckpointProcessGetState (a0, a1)
#define TD_WORK_cuCheckpointProcessGetState (NULL, 0, 0, 0)
#define TD_SPANS_cuCheckpointProcessGetState false
#define TD_PARAMS_cuCheckpointProcessLock (int a0, void *a1)
#define TD_ARGS_cuCheckpointProcessLock (a0, a1)
#define TD_WORK_cuCheckpointProcessLock (NULL, 0, 0, 0)
#define TD_SPANS_cuCheckpointProcessLock false
#define TD_PARAMS_cuCheckpointProcessRestore (int a0, void *a1)
#define TD_ARGS_cuCheckpointProcessRestore (a0, a1)
#define TD_WORK_cuCheckpointProcessRestore (NULL, 0, 0, 0)
#define TD_SPANS_cuCheckpointProcessRestore false
#define TD_PARAMS_cuCheckpointProcessUnlock (int a0, void *a1)
#define TD_ARGS_cuCheckpointProcessUnlock (a0, a1)
#define TD_WORK_cuCheckpointProcessUnlock (NULL, 0, 0, 0)
#define TD_SPANS_cuCheckpointProcessUnlock false
#define TD_PARAMS_cuCoredumpGetAttribute (int a0, void *a1, size_t *a2)
#define TD_ARGS_cuCoredumpGetAttribute (a0, a1, a2)
#define TD_WORK_cuCoredumpGetAttribute (NULL, 0, 0, 0)
#define TD_SPANS_cuCoredumpGetAttribute false
#define TD_PARAMS_cuCoredumpGetAttributeGlobal (int a0, void *a1, size_t *a2)
#define TD_ARGS_cuCoredumpGetAttributeGlobal (a0, a1, a2)
#define TD_WORK_cuCoredumpGetAttributeGlobal (NULL, 0, 0, 0)
#define TD_SPANS_cuCoredumpGetAttributeGlobal false
#define TD_PARAMS_cuCoredumpSetAttribute (int a0, void *a1, size_t *a2)
#define TD_ARGS_cuCoredumpSetAttribute (a0, a1, a2)
#define TD_WORK_cuCoredumpSetAttribute (NULL, 0, 0, 0)
#define TD_SPANS_cuCoredumpSetAttribute false
#define TD_PARAMS_cuCoredumpSetAttributeGlobal (int a0, void *a1, size_t *a2)
#define TD_ARGS_cuCoredumpSetAttributeGlobal (a0, a1, a2)
#define TD_WORK_cuCoredumpSetAttributeGlobal (NULL, 0, 0, 0)
#define TD_SPANS_cuCoredumpSetAttributeGlobal false
#define TD_PARAMS_cuCtxAttach (CUcontext *a0, unsigned int a1)
#define TD_ARGS_cuCtxAttach (a0, a1)
#define TD_WORK_cuCtxAttach (NULL, 0, 0, 0)
#define TD_SPANS_cuCtxAttach false
#define TD_PARAMS_cuCtxCreate (CUcontext *a0, unsigned int a1, CUdevice a2)
#define TD_ARGS_cuCtxCreate (a0, a1, a2)
#define TD_WORK_cuCtxCreate (NULL, 0, 0, 0)
#define TD_SPANS_cuCtxCreate false
#define TD_PARAMS_cuCtxCreate_v2 (CUcontext *a0, unsigned int a1, CUdevice a2)
#define TD_ARGS_cuCtxCreate_v2 (a0, a1, a2)
#define TD_WORK_cuCtxCreate_v2 (NULL, 0, 0, 0)
#define TD_SPANS_cuCtxCreate_v2 false
#define TD_PARAMS_cuCtxCreate_v3 (CUcontext *a0, void *a1, int a2, unsigned int a3, CUdevice a4)
#define TD_ARGS_cuCtxCreate_v3 (a0, a1, a2, a3, a4)
#define TD_WORK_cuCtxCreate_v3 (NULL, 0, 0, 0)
#define TD_SPANS_cuCtxCreate_v3 false
#define TD_PARAMS_cuCtxCreate_v4 (CUcontext *a0, void *a1, unsigned int a2, CUdevice a3)
#define TD_ARGS_cuCtxCreate_v4 (a0, a1, a2, a3)
#define TD_WORK_cuCtxCreate_v4 (NULL, 0, 0, 0)
#define TD_SPANS_cuCtxCreate_v4 false
#define TD_PARAMS_cuCtxDestroy (CUcontext a0)
#define TD_ARGS_cuCtxDestroy (a0)
#define TD_WORK_cuCtxDestroy (NULL, 0, 0, 0)
#define TD_SPANS_cuCtxDestroy false
#define TD_PARAMS_cuCtxDestroy_v2 (CUcontext a0)
#define TD_ARGS_cuCtxDestroy_v2 (a0)
#define TD_WORK_cuCtxDestroy_v2 (NULL, 0, 0, 0)
#define TD_SPANS_cuCtxDestroy_v2 false
#define TD_PARAMS_cuCtxDetach (CUcontext a0)
#define TD_ARGS_cuCtxDetach (a0)
#define TD_WORK_cuCtxDetach (NULL, 0, 0, 0)
#define TD_SPANS_cuCtxDetach false
#define TD_PARAMS_cuCtxDisablePeerAccess (CUcontext a0)
#define TD_ARGS_cuCtxDisablePeerAccess (a0)
#define TD_WORK_cuCtxDisablePeerAccess (NULL, 0, 0, 0)
#define TD_SPANS_cuCtxDisablePeerAccess false
#define TD_PARAMS_cuCtxEnablePeerAccess (CUcontext a0, unsigned int a1)
#define TD_ARGS_cuCtxEnablePeerAccess (a0, a1)
#define TD_WORK_cuCtxEnablePeerAccess (NULL, 0, 0, 0)
#define TD_SPANS_cuCtxEnablePeerAccess false
#define TD_PARAMS_cuCtxFromGreenCtx (CUcontext *a0, void *a1)
#define TD_ARGS_cuCtxFromGreenCtx (a0, a1)
#define TD_WORK_cuCtxFromGreenCtx (NULL, 0, 0, 0)
#define TD_SPANS_cuCtxFromGreenCtx false
#define TD_PARAMS_cuCtxGetApiVersion (CUcontext a0, unsigned int *a1)
#define TD_ARGS_cuCtxGetApiVersion (a0, a1)
#define TD_WORK_cuCtxGetApiVersion (NULL, 0, 0, 0)
#define TD_SPANS_cuCtxGetApiVersion false
#define TD_PARAMS_cuCtxGetCacheConfig (int *a0)
#define TD_ARGS_cuCtxGetCacheConfig (a0)
#define TD_WORK_cuCtxGetCacheConfig (NULL, 0, 0, 0)
#define TD_SPANS_cuCtxGetCacheConfig false
#define TD_PARAMS_cuCtxGetCurrent (CUcontext *a0)
#define TD_ARGS_cuCtxGetCurrent (a0)
#define TD_WORK_cuCtxGetCurrent (NULL, 0, 0, 0)
#define TD_SPANS_cuCtxGetCurrent false
#define TD_PARAMS_cuCtxGetDevResource (CUcontext a0, void *a1, int a2)
#define TD_ARGS_cuCtxGetDevResource (a0, a1, a2)
#define TD_WORK_cuCtxGetDevResource (NULL, 0, 0, 0)
#define TD_SPANS_cuCtxGetDevResource false
#define TD_PARAMS_cuCtxGetDevice (CUdevice *a0)
#define TD_ARGS_cuCtxGetDevice (a0)
#define TD_WORK_cuCtxGetDevice (NULL, 0, 0, 0)
#define TD_SPANS_cuCtxGetDevice false
#define TD_PARAMS_cuCtxGetDevice_v2 (CUdevice *a0, CUcontext a1)
#define TD_ARGS_cuCtxGetDevice_v2 (a0, a1)
#define TD_WORK_cuCtxGetDevice_v2 (NULL, 0, 0, 0)
#define TD_SPANS_cuCtxGetDevice_v2 false
#define TD_PARAMS_cuCtxGetExecAffinity (void *a0, int a1)
#define TD_ARGS_cuCtxGetExecAffinity (a0, a1)
#define TD_WORK_cuCtxGetExecAffinity (NULL, 0, 0, 0)
#define TD_SPANS_cuCtxGetExecAffinity false
#define TD_PARAMS_cuCtxGetFlags (unsigned int *a0)
#define TD_ARGS_cuCtxGetFlags (a0)
#define TD_WORK_cuCtxGetFlags (NULL, 0, 0, 0)
#define TD_SPANS_cuCtxGetFlags false
#define TD_PARAMS_cuCtxGetId (CUcontext a0, unsigned long long *a1)
#define TD_ARGS_cuCtxGetId (a0, a1)
#define TD_WORK_cuCtxGetId (NULL, 0, 0, 0)
#define TD_SPANS_cuCtxGetId false
#define TD_PARAMS_cuCtxGetLimit (size_t *a0, int a1)
#define TD_ARGS_cuCtxGetLimit (a0, a1)
#define TD_WORK_cuCtxGetLimit (NULL, 0, 0, 0)
#define TD_SPANS_cuCtxGetLimit false
#define TD_PARAMS_cuCtxGetSharedMemConfig (int *a0)
#define TD_ARGS_cuCtxGetSharedMemConfig (a0)
#define TD_WORK_cuCtxGetSharedMemConfig (NULL, 0, 0, 0)
#define TD_SPANS_cuCtxGetSharedMemConfig false
#define TD_PARAMS_cuCtxGetStreamPriorityRange (int *a0, int *a1)
#define TD_ARGS_cuCtxGetStreamPriorityRange (a0, a1)
#define TD_WORK_cuCtxGetStreamPriorityRange (NULL, 0, 0, 0)
#define TD_SPANS_cuCtxGetStreamPriorityRange false
#define TD_PARAMS_cuCtxPopCurrent (CUcontext *a0)
#define TD_ARGS_cuCtxPopCurrent (a0)
#define TD_WORK_cuCtxPopCurrent (NULL, 0, 0, 0)
#define TD_SPANS_cuCtxPopCurrent false
#define TD_PARAMS_cuCtxPopCurrent_v2 (CUcontext *a0)
#define TD_ARGS_cuCtxPopCurrent_v2 (a0)
#define TD_WORK_cuCtxPopCurrent_v2 (NULL, 0, 0, 0)
#define TD_SPANS_cuCtxPopCurrent_v2 false
#define TD_PARAMS_cuCtxPushCurrent (CUcontext a0)
#define TD_ARGS_cuCtxPushCurrent (a0)
#define TD_WORK_cuCtxPushCurrent (NULL, 0, 0, 0)
#define TD_SPANS_cuCtxPushCurrent false
#define TD_PARAMS_cuCtxPushCurrent_v2 (CUcontext a0)
#define TD_ARGS_cuCtxPushCurrent_v2 (a0)
#define TD_WORK_cuCtxPushCurrent_v2 (NULL, 0, 0, 0)
#define TD_SPANS_cuCtxPushCurrent_v2 false
#define TD_PARAMS_cuCtxRecordEvent (CUcontext a0, CUevent a1)
#define TD_ARGS_cuCtxRecordEvent (a0, a1)
#define TD_WORK_cuCtxRecordEvent (NULL, 0, 0, 0)
#define TD_SPANS_cuCtxRecordEvent false
#define TD_PARAMS_cuCtxResetPersistingL2Cache (void)
#define TD_ARGS_cuCtxResetPersistingL2Cache ()
#define TD_WORK_cuCtxResetPersistingL2Cache (NULL, 0, 0, 0)
#define TD_SPANS_cuCtxResetPersistingL2Cache false
#define TD_PARAMS_cuCtxSetCacheConfig (int a0)
#define TD_ARGS_cuCtxSetCacheConfig (a0)
#define TD_WORK_cuCtxSetCacheConfig (NULL, 0, 0, 0)
#define TD_SPANS_cuCtxSetCacheConfig false
#define TD_PARAMS_cuCtxSetCurrent (CUcontext a0)
#define TD_ARGS_cuCtxSetCurrent (a0)
#define TD_WORK_cuCtxSetCurrent (NULL, 0, 0, 0)
#define TD_SPANS_cuCtxSetCurrent false
#define TD_PARAMS_cuCtxSetFlags (unsigned int a0)
#define TD_ARGS_cuCtxSetFlags (a0)
#define TD_WORK_cuCtxSetFlags (NULL, 0, 0, 0)
#define TD_SPANS_cuCtxSetFlags false
#define TD_PARAMS_cuCtxSetLimit (int a0, size_t a1)
#define TD_ARGS_cuCtxSetLimit (a0, a1)
#define TD_WORK_cuCtxSetLimit (NULL, 0, 0, 0)
#define TD_SPANS_cuCtxSetLimit false
#define TD_PARAMS_cuCtxSetSharedMemConfig (int a0)
#define TD_ARGS_cuCtxSetSharedMemConfig (a0)
#define TD_WORK_cuCtxSetSharedMemConfig (NULL, 0, 0, 0)
#define TD_SPANS_cuCtxSetSharedMemConfig false
#define TD_PARAMS_cuCtxSynchronize (void)
#define TD_ARGS_cuCtxSynchronize ()
#define TD_WORK_cuCtxSynchronize (NULL, 0, 0, 0)
#define TD_SPANS_cuCtxSynchronize false
#define TD_PARAMS_cuCtxSynchronize_v2 (CUcontext a0)
#define TD_ARGS_cuCtxSynchronize_v2 (a0)
#define TD_WORK_cuCtxSynchronize_v2 (NULL, 0, 0, 0)
#define TD_SPANS_cuCtxSynchronize_v2 false
#define TD_PARAMS_cuCtxWaitEvent (CUcontext a0, CUevent a1)
#define TD_ARGS_cuCtxWaitEvent (a0, a1)
#define TD_WORK_cuCtxWaitEvent (NULL, 0, 0, 0)
#define TD_SPANS_cuCtxWaitEvent false
#define TD_PARAMS_cuDestroyExternalMemory (void *a0)
#define TD_ARGS_cuDestroyExternalMemory (a0)
#define TD_WORK_cuDestroyExternalMemory (NULL, 0, 0, 0)
#define TD_SPANS_cuDestroyExternalMemory false
#define TD_PARAMS_cuDestroyExternalSemaphore (void *a0)
#define TD_ARGS_cuDestroyExternalSemaphore (a0)
#define TD_WORK_cuDestroyExternalSemaphore (NULL, 0, 0, 0)
#define TD_SPANS_cuDestroyExternalSemaphore false
#define TD_PARAMS_cuDevResourceGenerateDesc (void **a0, void *a1, unsigned int a2)
#define TD_ARGS_cuDevResourceGenerateDesc (a0, a1, a2)
#define TD_WORK_cuDevResourceGenerateDesc (NULL, 0, 0, 0)
#define TD_SPANS_cuDevResourceGenerateDesc false
#define TD_PARAMS_cuDevSmResourceSplitByCount (void *a0, unsigned int *a1, const void *a2, void *a3, unsigned int a4, unsigned int a5)
#define TD_ARGS_cuDevSmResourceSplitByCount (a0, a1, a2, a3, a4, a5)
#define TD_WORK_cuDevSmResourceSplitByCount (NULL, 0, 0, 0)
#define TD_SPANS_cuDevSmResourceSplitByCount false
#define TD_PARAMS_cuDeviceCanAccessPeer (int *a0, CUdevice a1, CUdevice a2)
#define TD_ARGS_cuDeviceCanAccessPeer (a0, a1, a2)
#define TD_WORK_cuDeviceCanAccessPeer (NULL, 0, 0, 0)
#define TD_SPANS_cuDeviceCanAccessPeer false
#define TD_PARAMS_cuDeviceComputeCapability (int *a0, int *a1, CUdevice a2)
#define TD_ARGS_cuDeviceComputeCapability (a0, a1, a2)
#define TD_WORK_cuDeviceComputeCapability (NULL, 0, 0, 0)
#define TD_SPANS_cuDeviceComputeCapability false
#define TD_PARAMS_cuDeviceGet (CUdevice *a0, int a1)
#define TD_ARGS_cuDeviceGet (a0, a1)
#define TD_WORK_cuDeviceGet (NULL, 0, 0, 0)
#define TD_SPANS_cuDeviceGet false
#define TD_PARAMS_cuDeviceGetAttribute (int *a0, int a1, CUdevice a2)
#define TD_ARGS_cuDeviceGetAttribute (a0, a1, a2)
#define TD_WORK_cuDeviceGetAttribute (NULL, 0, 0, 0)
#define TD_SPANS_cuDeviceGetAttribute false
#define TD_PARAMS_cuDeviceGetByPCIBusId (CUdevice *a0, const char *a1)
#define TD_ARGS_cuDeviceGetByPCIBusId (a0, a1)
#define TD_WORK_cuDeviceGetByPCIBusId (NULL, 0, 0, 0)
#define TD_SPANS_cuDeviceGetByPCIBusId false
#define TD_PARAMS_cuDeviceGetCount (int *a0)
#define TD_ARGS_cuDeviceGetCount (a0)
#define TD_WORK_cuDeviceGetCount (NULL, 0, 0, 0)
#define TD_SPANS_cuDeviceGetCount false
#define TD_PARAMS_cuDeviceGetDefaultMemPool (void **a0, CUdevice a1)
#define TD_ARGS_cuDeviceGetDefaultMemPool (a0, a1)
#define TD_WORK_cuDeviceGetDefaultMemPool (NULL, 0, 0, 0)
#define TD_SPANS_cuDeviceGetDefaultMemPool false
#define TD_PARAMS_cuDeviceGetDevResource (CUdevice a0, void *a1, int a2)
#define TD_ARGS_cuDeviceGetDevResource (a0, a1, a2)
#define TD_WORK_cuDeviceGetDevResource (NULL, 0, 0, 0)
#define TD_SPANS_cuDeviceGetDevResource false
#define TD_PARAMS_cuDeviceGetExecAffinitySupport (int *a0, int a1, CUdevice a2)
#define TD_ARGS_cuDeviceGetExecAffinitySupport (a0, a1, a2)
#define TD_WORK_cuDeviceGetExecAffinitySupport (NULL, 0, 0, 0)
#define TD_SPANS_cuDeviceGetExecAffinitySupport false
#define TD_PARAMS_cuDeviceGetGraphMemAttribute (CUdevice a0, int a1, void *a2)
#define TD_ARGS_cuDeviceGetGraphMemAttribute (a0, a1, a2)
#define TD_WORK_cuDeviceGetGraphMemAttribute (NULL, 0, 0, 0)
#define TD_SPANS_cuDeviceGetGraphMemAttribute false
#define TD_PARAMS_cuDeviceGetHostAtomicCapabilities (unsigned int *a0, const int *a1, unsigned int a2, CUdevice a3)
#define TD_ARGS_cuDeviceGetHostAtomicCapabilities (a0, a1, a2, a3)
#define TD_WORK_cuDeviceGetHostAtomicCapabilities (NULL, 0, 0, 0)
#define TD_SPANS_cuDeviceGetHostAtomicCapabilities false
#define TD_PARAMS_cuDeviceGetLuid (char *a0, unsigned int *a1, CUdevice a2)
#define TD_ARGS_cuDeviceGetLuid (a0, a1, a2)
#define TD_WORK_cuDeviceGetLuid (NULL, 0, 0, 0)
#define TD_SPANS_cuDeviceGetLuid false
#define TD_PARAMS_cuDeviceGetMemPool (void **a0, CUdevice a1)
#define TD_ARGS_cuDeviceGetMemPool (a0, a1)
#define TD_WORK_cuDeviceGetMemPool (NULL, 0, 0, 0)
#define TD_SPANS_cuDeviceGetMemPool false
#define TD_PARAMS_cuDeviceGetName (char *a0, int a1, CUdevice a2)
#define TD_ARGS_cuDeviceGetName (a0, a1, a2)
#define TD_WORK_cuDeviceGetName (NULL, 0, 0, 0)
#define TD_SPANS_cuDeviceGetName false
#define TD_PARAMS_cuDeviceGetNvSciSyncAttributes (void *a0, CUdevice a1, int a2)
#define TD_ARGS_cuDeviceGetNvSciSyncAttributes (a0, a1, a2)
#define TD_WORK_cuDeviceGetNvSciSyncAttributes (NULL, 0, 0, 0)
#define TD_SPANS_cuDeviceGetNvSciSyncAttributes false
#define TD_PARAMS_cuDeviceGetP2PAtomicCapabilities (unsigned int *a0, const int *a1, unsigned int a2, CUdevice a3, CUdevice a4)
#define TD_ARGS_cuDeviceGetP2PAtomicCapabilities (a0, a1, a2, a3, a4)
#define TD_WORK_cuDeviceGetP2PAtomicCapabilities (NULL, 0, 0, 0)
#define TD_SPANS_cuDeviceGetP2PAtomicCapabilities false
#define TD_PARAMS_cuDeviceGetP2PAttribute (int *a0, int a1, CUdevice a2, CUdevice a3)
#define TD_ARGS_cuDeviceGetP2PAttribute (a0, a1, a2, a3)
#define TD_WORK_cuDeviceGetP2PAttribute (NULL, 0, 0, 0)
#define TD_SPANS_cuDeviceGetP2PAttribute false
#define TD_PARAMS_cuDeviceGetPCIBusId (char *a0, int a1, CUdevice a2)
#define TD_ARGS_cuDeviceGetPCIBusId (a0, a1, a2)
#define TD_WORK_cuDeviceGetPCIBusId (NULL, 0, 0, 0)
#define TD_SPANS_cuDeviceGetPCIBusId false
#define TD_PARAMS_cuDeviceGetProperties (void *a0, CUdevice a1)
#define TD_ARGS_cuDeviceGetProperties (a0, a1)
#define TD_WORK_cuDeviceGetProperties (NULL, 0, 0, 0)
#define TD_SPANS_cuDeviceGetProperties false
#define TD_PARAMS_cuDeviceGetTexture1DLinearMaxWidth (size_t *a0, int a1, unsigned a2, CUdevice a3)
#define TD_ARGS_cuDeviceGetTexture1DLinearMaxWidth (a0, a1, a2, a3)
#define TD_WORK_cuDeviceGetTexture1DLinearMaxWidth (NULL, 0, 0, 0)
#define TD_SPANS_cuDeviceGetTexture1DLinearMaxWidth false
#define TD_PARAMS_cuDeviceGetUuid (CUuuid *a0, CUdevice a1)
#define TD_ARGS_cuDeviceGetUuid (a0, a1)
#define TD_WORK_cuDeviceGetUuid (NULL, 0, 0, 0)
#define TD_SPANS_cuDeviceGetUuid false
#define TD_PARAMS_cuDeviceGetUuid_v2 (CUuuid *a0, CUdevice a1)
#define TD_ARGS_cuDeviceGetUuid_v2 (a0, a1)
#define TD_WORK_cuDeviceGetUuid_v2 (NULL, 0, 0, 0)
#define TD_SPANS_cuDeviceGetUuid_v2 false
#define TD_PARAMS_cuDeviceGraphMemTrim (CUdevice a0)
#define TD_ARGS_cuDeviceGraphMemTrim (a0)
#define TD_WORK_cuDeviceGraphMemTrim (NULL, 0, 0, 0)
#define TD_SPANS_cuDeviceGraphMemTrim false
#define TD_PARAMS_cuDevicePrimaryCtxGetState (CUdevice a0, unsigned int *a1, int *a2)
#define TD_ARGS_cuDevicePrimaryCtxGetState (a0, a1, a2)
#define TD_WORK_cuDevicePrimaryCtxGetState (NULL, 0, 0, 0)
#define TD_SPANS_cuDevicePrimaryCtxGetState false
#define TD_PARAMS_cuDevicePrimaryCtxRelease (CUdevice a0)
#define TD_ARGS_cuDevicePrimaryCtxRelease (a0)
#define TD_WORK_cuDevicePrimaryCtxRelease (NULL, 0, 0, 0)
#define TD_SPANS_cuDevicePrimaryCtxRelease false
#define TD_PARAMS_cuDevicePrimaryCtxRelease_v2 (CUdevice a0)
#define TD_ARGS_cuDevicePrimaryCtxRelease_v2 (a0)
#define TD_WORK_cuDevicePrimaryCtxRelease_v2 (NULL, 0, 0, 0)
#define TD_SPANS_cuDevicePrimaryCtxRelease_v2 false
#define TD_PARAMS_cuDevicePrimaryCtxReset (CUdevice a0)
#define TD_ARGS_cuDevicePrimaryCtxReset (a0)
#define TD_WORK_cuDevicePrimaryCtxReset (NULL, 0, 0, 0)
#define TD_SPANS_cuDevicePrimaryCtxReset false
#define TD_PARAMS_cuDevicePrimaryCtxReset_v2 (CUdevice a0)
#define TD_ARGS_cuDevicePrimaryCtxReset_v2 (a0)
#define TD_WORK_cuDevicePrimaryCtxReset_v2 (NULL, 0, 0, 0)
#define TD_SPANS_cuDevicePrimaryCtxReset_v2 false
#define TD_PARAMS_cuDevicePrimaryCtxRetain (CUcontext *a0, CUdevice a1)
#define TD_ARGS_cuDevicePrimaryCtxRetain (a0, a1)
#define TD_WORK_cuDevicePrimaryCtxRetain (NULL, 0, 0, 0)
#define TD_SPANS_cuDevicePrimaryCtxRetain false
#define TD_PARAMS_cuDevicePrimaryCtxSetFlags (CUdevice a0, unsigned int a1)
#define TD_ARGS_cuDevicePrimaryCtxSetFlags (a0, a1)
#define TD_WORK_cuDevicePrimaryCtxSetFlags (NULL, 0, 0, 0)
#define TD_SPANS_cuDevicePrimaryCtxSetFlags false
#define TD_PARAMS_cuDevicePrimaryCtxSetFlags_v2 (CUdevice a0, unsigned int a1)
#define TD_ARGS_cuDevicePrimaryCtxSetFlags_v2 (a0, a1)
#define TD_WORK_cuDevicePrimaryCtxSetFlags_v2 (NULL, 0, 0, 0)
#define TD_SPANS_cuDevicePrimaryCtxSetFlags_v2 false
#define TD_PARAMS_cuDeviceRegisterAsyncNotification (CUdevice a0, void *a1, void *a2, void **a3)
#define TD_ARGS_cuDeviceRegisterAsyncNotification (a0, a1, a2, a3)
#define TD_WORK_cuDeviceRegisterAsyncNotification (NULL, 0, 0, 0)
#define TD_SPANS_cuDeviceRegisterAsyncNotification false
#define TD_PARAMS_cuDeviceSetGraphMemAttribute (CUdevice a0, int a1, void *a2)
#define TD_ARGS_cuDeviceSetGraphMemAttribute (a0, a1, a2)
#define TD_WORK_cuDeviceSetGraphMemAttribute (NULL, 0, 0, 0)
#define TD_SPANS_cuDeviceSetGraphMemAttribute false
#define TD_PARAMS_cuDeviceSetMemPool (CUdevice a0, void *a1)
#define TD_ARGS_cuDeviceSetMemPool (a0, a1)
#define TD_WORK_cuDeviceSetMemPool (NULL, 0, 0, 0)
#define TD_SPANS_cuDeviceSetMemPool false
#define TD_PARAMS_cuDeviceTotalMem (unsigned int *a0, CUdevice a1)
#define TD_ARGS_cuDeviceTotalMem (a0, a1)
#define TD_WORK_cuDeviceTotalMem (NULL, 0, 0, 0)
#define TD_SPANS_cuDeviceTotalMem false
#define TD_PARAMS_cuDeviceTotalMem_v2 (size_t *a0, CUdevice a1)
#define TD_ARGS_cuDeviceTotalMem_v2 (a0, a1)
#define TD_WORK_cuDeviceTotalMem_v2 (NULL, 0, 0, 0)
#define TD_SPANS_cuDeviceTotalMem_v2 false
#define TD_PARAMS_cuDeviceUnregisterAsyncNotification (CUdevice a0, void *a1)
#define TD_ARGS_cuDeviceUnregisterAsyncNotification (a0, a1)
#define TD_WORK_cuDeviceUnregisterAsyncNotification (NULL, 0, 0, 0)
#define TD_SPANS_cuDeviceUnregisterAsyncNotification false
#define TD_PARAMS_cuDriverGetVersion (int *a0)
#define TD_ARGS_cuDriverGetVersion (a0)
#define TD_WORK_cuDriverGetVersion (NULL, 0, 0, 0)
#define TD_SPANS_cuDriverGetVersion false
#define TD_PARAMS_cuEventCreate (CUevent *a0, unsigned int a1)
#define TD_ARGS_cuEventCreate (a0, a1)
#define TD_WORK_cuEventCreate (NULL, 0, 0, 0)
#define TD_SPANS_cuEventCreate false
#define TD_PARAMS_cuEventDestroy (CUevent a0)
#define TD_ARGS_cuEventDestroy (a0)
#define TD_WORK_cuEventDestroy (NULL, 0, 0, 0)
#define TD_SPANS_cuEventDestroy false
#define TD_PARAMS_cuEventDestroy_v2 (CUevent a0)
#define TD_ARGS_cuEventDestroy_v2 (a0)
#define TD_WORK_cuEventDestroy_v2 (NULL, 0, 0, 0)
#define TD_SPANS_cuEventDestroy_v2 false
#define TD_PARAMS_cuEventElapsedTime (float *a0, CUevent a1, CUevent a2)
#define TD_ARGS_cuEventElapsedTime (a0, a1, a2)
#define TD_WORK_cuEventElapsedTime (NULL, 0, 0, 0)
#define TD_SPANS_cuEventElapsedTime false
#define TD_PARAMS_cuEventElapsedTime_v2 (float *a0, CUevent a1, CUevent a2)
#define TD_ARGS_cuEventElapsedTime_v2 (a0, a1, a2)
#define TD_WORK_cuEventElapsedTime_v2 (NULL, 0, 0, 0)
#define TD_SPANS_cuEventElapsedTime_v2 false
#define TD_PARAMS_cuEventQuery (CUevent a0)
#define TD_ARGS_cuEventQuery (a0)
#define TD_WORK_cuEventQuery (NULL, 0, 0, 0)
#define TD_SPANS_cuEventQuery false
#define TD_PARAMS_cuEventRecord (CUevent a0, CUstream stream)
#define TD_ARGS_cuEventRecord (a0, stream)
#define TD_WORK_cuEventRecord (NULL, 0, 0, 0)
#define TD_SPANS_cuEventRecord false
#define TD_PARAMS_cuEventRecord_ptsz (CUevent a0, CUstream stream)
#define TD_ARGS_cuEventRecord_ptsz (a0, stream)
#define TD_WORK_cuEventRecord_ptsz (NULL, 0, 0, 0)
#define TD_SPANS_cuEventRecord_ptsz false
#define TD_PARAMS_cuEventRecordWithFlags (CUevent a0, CUstream stream, unsigned int a2)
#define TD_ARGS_cuEventRecordWithFlags (a0, stream, a2)
#define TD_WORK_cuEventRecordWithFlags (NULL, 0, 0, 0)
#define TD_SPANS_cuEventRecordWithFlags false
#define TD_PARAMS_cuEventRecordWithFlags_ptsz (CUevent a0, CUstream stream, unsigned int a2)
#define TD_ARGS_cuEventRecordWithFlags_ptsz (a0, stream, a2)
#define TD_WORK_cuEventRecordWithFlags_ptsz (NULL, 0, 0, 0)
#define TD_SPANS_cuEventRecordWithFlags_ptsz false
#define TD_PARAMS_cuEventSynchronize (CUevent a0)
#define TD_ARGS_cuEventSynchronize (a0)
#define TD_WORK_cuEventSynchronize (NULL, 0, 0, 0)
#define TD_SPANS_cuEventSynchronize false
#define TD_PARAMS_cuExternalMemoryGetMappedBuffer (CUdeviceptr *a0, void *a1, const void *a2)
#define TD_ARGS_cuExternalMemoryGetMappedBuffer (a0, a1, a2)
#define TD_WORK_cuExternalMemoryGetMappedBuffer (NULL, 0, 0, 0)
#define TD_SPANS_cuExternalMemoryGetMappedBuffer false
#define TD_PARAMS_cuExternalMemoryGetMappedMipmappedArray (void **a0, void *a1, const void *a2)
#define TD_ARGS_cuExternalMemoryGetMappedMipmappedArray (a0, a1, a2)
#define TD_WORK_cuExternalMemoryGetMappedMipmappedArray (NULL, 0, 0, 0)
#define TD_SPANS_cuExternalMemoryGetMappedMipmappedArray false
#define TD_PARAMS_cuFlushGPUDirectRDMAWrites (int a0, int a1)
#define TD_ARGS_cuFlushGPUDirectRDMAWrites (a0, a1)
#define TD_WORK_cuFlushGPUDirectRDMAWrites (NULL, 0, 0, 0)
#define TD_SPANS_cuFlushGPUDirectRDMAWrites false
#define TD_PARAMS_cuFuncGetAttribute (int *a0, int a1, CUfunction a2)
#define TD_ARGS_cuFuncGetAttribute (a0, a1, a2)
#define TD_WORK_cuFuncGetAttribute (NULL, 0, 0, 0)
#define TD_SPANS_cuFuncGetAttribute false
#define TD_PARAMS_cuFuncGetModule (CUmodule *a0, CUfunction a1)
#define TD_ARGS_cuFuncGetModule (a0, a1)
#define TD_WORK_cuFuncGetModule (NULL, 0, 0, 0)
#define TD_SPANS_cuFuncGetModule false
#define TD_PARAMS_cuFuncGetName (const char **a0, CUfunction a1)
#define TD_ARGS_cuFuncGetName (a0, a1)
#define TD_WORK_cuFuncGetName (NULL, 0, 0, 0)
#define TD_SPANS_cuFuncGetName false
#define TD_PARAMS_cuFuncGetParamInfo (CUfunction a0, size_t a1, size_t *a2, size_t *a3)
#define TD_ARGS_cuFuncGetParamInfo (a0, a1, a2, a3)
#define TD_WORK_cuFuncGetParamInfo (NULL, 0, 0, 0)
#define TD_SPANS_cuFuncGetParamInfo false
#define TD_PARAMS_cuFuncIsLoaded (int *a0, CUfunction a1)
#define TD_ARGS_cuFuncIsLoaded (a0, a1)
#define TD_WORK_cuFuncIsLoaded (NULL, 0, 0, 0)
#define TD_SPANS_cuFuncIsLoaded false
#define TD_PARAMS_cuFuncLoad (CUfunction a0)
#define TD_ARGS_cuFuncLoad (a0)
#define TD_WORK_cuFuncLoad (NULL, 0, 0, 0)
#define TD_SPANS_cuFuncLoad false
#define TD_PARAMS_cuFuncSetAttribute (CUfunction a0, int a1, int a2)
#define TD_ARGS_cuFuncSetAttribute (a0, a1, a2)
#define TD_WORK_cuFuncSetAttribute (NULL, 0, 0, 0)
#define TD_SPANS_cuFuncSetAttribute false
#define TD_PARAMS_cuFuncSetBlockShape (CUfunction a0, int a1, int a2, int a3)
#define TD_ARGS_cuFuncSetBlockShape (a0, a1, a2, a3)
#define TD_WORK_cuFuncSetBlockShape (NULL, 0, 0, 0)
#define TD_SPANS_cuFuncSetBlockShape false
#define TD_PARAMS_cuFuncSetCacheConfig (CUfunction a0, int a1)
#define TD_ARGS_cuFuncSetCacheConfig (a0, a1)
#define TD_WORK_cuFuncSetCacheConfig (NULL, 0, 0, 0)
#define TD_SPANS_cuFuncSetCacheConfig false
#define TD_PARAMS_cuFuncSetSharedMemConfig (CUfunction a0, int a1)
#define TD_ARGS_cuFuncSetSharedMemConfig (a0, a1)
#define TD_WORK_cuFuncSetSharedMemConfig (NULL, 0, 0, 0)
#define TD_SPANS_cuFuncSetSharedMemConfig false
#define TD_PARAMS_cuFuncSetSharedSize (CUfunction a0, unsigned int a1)
#define TD_ARGS_cuFuncSetSharedSize (a0, a1)
#define TD_WORK_cuFuncSetSharedSize (NULL, 0, 0, 0)
#define TD_SPANS_cuFuncSetSharedSize false
#define TD_PARAMS_cuGetErrorName (int a0, const char **a1)
#define TD_ARGS_cuGetErrorName (a0, a1)
#define TD_WORK_cuGetErrorName (NULL, 0, 0, 0)
#define TD_SPANS_cuGetErrorName false
#define TD_PARAMS_cuGetErrorString (int a0, const char **a1)
#define TD_ARGS_cuGetErrorString (a0, a1)
#define TD_WORK_cuGetErrorString (NULL, 0, 0, 0)
#define TD_SPANS_cuGetErrorString false
#define TD_PARAMS_cuGetExportTable (void **a0, const CUuuid *a1)
#define TD_ARGS_cuGetExportTable (a0, a1)
#define TD_WORK_cuGetExportTable (NULL, 0, 0, 0)
#define TD_SPANS_cuGetExportTable false
#define TD_PARAMS_cuGetProcAddress (const char *a0, void **a1, int a2, uint64_t a3)
#define TD_ARGS_cuGetProcAddress (a0, a1, a2, a3)
#define TD_WORK_cuGetProcAddress (NULL, 0, 0, 0)
#define TD_SPANS_cuGetProcAddress false
#define TD_PARAMS_cuGetProcAddress_v2 (const char *a0, void **a1, int a2, uint64_t a3, int *a4)
#define TD_ARGS_cuGetProcAddress_v2 (a0, a1, a2, a3, a4)
#define TD_WORK_cuGetProcAddress_v2 (NULL, 0, 0, 0)
#define TD_SPANS_cuGetProcAddress_v2 false
#define TD_PARAMS_cuGraphAddBatchMemOpNode (void **a0, void *a1, const void **a2, size_t a3, const void *a4)
#define TD_ARGS_cuGraphAddBatchMemOpNode (a0, a1, a2, a3, a4)
#define TD_WORK_cuGraphAddBatchMemOpNode (NULL, 0, 0, 0)
#define TD_SPANS_cuGraphAddBatchMemOpNode false
#define TD_PARAMS_cuGraphAddChildGraphNode (void **a0, void *a1, const void **a2, size_t a3, void *a4)
#define TD_ARGS_cuGraphAddChildGraphNode (a0, a1, a2, a3, a4)
#define TD_WORK_cuGraphAddChildGraphNode (NULL, 0, 0, 0)
#define TD_SPANS_cuGraphAddChildGraphNode false
#define TD_PARAMS_cuGraphAddDependencies (void *a0, const void **a1, const void **a2, size_t a3)
#define TD_ARGS_cuGraphAddDependencies (a0, a1, a2, a3)
#define TD_WORK_cuGraphAddDependencies (NULL, 0, 0, 0)
#define TD_SPANS_cuGraphAddDependencies false
#define TD_PARAMS_cuGraphAddDependencies_v2 (void *a0, const void **a1, const void **a2, const void *a3, size_t a4)
#define TD_ARGS_cuGraphAddDependencies_v2 (a0, a1, a2, a3, a4)
#define TD_WORK_cuGraphAddDependencies_v2 (NULL, 0, 0, 0)
#define TD_SPANS_cuGraphAddDependencies_v2 false
#define TD_PARAMS_cuGraphAddEmptyNode (void **a0, void *a1, const void **a2, size_t a3)
#define TD_ARGS_cuGraphAddEmptyNode (a0, a1, a2, a3)
#define TD_WORK_cuGraphAddEmptyNode (NULL, 0, 0, 0)
#define TD_SPANS_cuGraphAddEmptyNode false
#define TD_PARAMS_cuGraphAddEventRecordNode (void **a0, void *a1, const void **a2, size_t a3, CUevent a4)
#define TD_ARGS_cuGraphAddEventRecordNode (a0, a1, a2, a3, a4)
#define TD_WORK_cuGraphAddEventRecordNode (NULL, 0, 0, 0)
#define TD_SPANS_cuGraphAddEventRecordNode false
#define TD_PARAMS_cuGraphAddEventWaitNode (void **a0, void *a1, const void **a2, size_t a3, CUevent a4)
#define TD_ARGS_cuGraphAddEventWaitNode (a0, a1, a2, a3, a4)
#define TD_WORK_cuGraphAddEventWaitNode (NULL, 0, 0, 0)
#define TD_SPANS_cuGraphAddEventWaitNode false
#define TD_PARAMS_cuGraphAddExternalSemaphoresSignalNode (void **a0, void *a1, const void **a2, size_t a3, const void *a4)
#define TD_ARGS_cuGraphAddExternalSemaphoresSignalNode (a0, a1, a2, a3, a4)
#define TD_WORK_cuGraphAddExternalSemaphoresSignalNode (NULL, 0, 0, 0)
#define TD_SPANS_cuGraphAddExternalSemaphoresSignalNode false
#define TD_PARAMS_cuGraphAddExternalSemaphoresWaitNode (void **a0, void *a1, const void **a2, size_t a3, const void *a4)
#define TD_ARGS_cuGraphAddExternalSemaphoresWaitNode (a0, a1, a2, a3, a4)
#define TD_WORK_cuGraphAddExternalSemaphoresWaitNode (NULL, 0, 0, 0)
#define TD_SPANS_cuGraphAddExternalSemaphoresWaitNode false
#define TD_PARAMS_cuGraphAddHostNode (void **a0, void *a1, const void **a2, size_t a3, const void *a4)
#define TD_ARGS_cuGraphAddHostNode (a0, a1, a2, a3, a4)
#define TD_WORK_cuGraphAddHostNode (NULL, 0, 0, 0)
#define TD_SPANS_cuGraphAddHostNode false
#define TD_PARAMS_cuGraphAddKernelNode (void **a0, void *a1, const void **a2, size_t a3, const void *a4)
#define TD_ARGS_cuGraphAddKernelNode (a0, a1, a2, a3, a4)
#define TD_WORK_cuGraphAddKernelNode (NULL, 0, 0, 0)
#define TD_SPANS_cuGraphAddKernelNode false
#define TD_PARAMS_cuGraphAddKernelNode_v2 (void **a0, void *a1, const void **a2, size_t a3, const void *a4)
#define TD_ARGS_cuGraphAddKernelNode_v2 (a0, a1, a2, a3, a4)
#define TD_WORK_cuGraphAddKernelNode_v2 (NULL, 0, 0, 0)
#define TD_SPANS_cuGraphAddKernelNode_v2 false
#define TD_PARAMS_cuGraphAddMemAllocNode (void **a0, void *a1, const void **a2, size_t a3, void *a4)
#define TD_ARGS_cuGraphAddMemAllocNode (a0, a1, a2, a3, a4)
#define TD_WORK_cuGraphAddMemAllocNode (NULL, 0, 0, 0)
#define TD_SPANS_cuGraphAddMemAllocNode false
#define TD_PARAMS_cuGraphAddMemFreeNode (void **a0, void *a1, const void **a2, size_t a3, CUdeviceptr a4)
#define TD_ARGS_cuGraphAddMemFreeNode (a0, a1, a2, a3, a4)
#define TD_WORK_cuGraphAddMemFreeNode (NULL, 0, 0, 0)
#define TD_SPANS_cuGraphAddMemFreeNode false
#define TD_PARAMS_cuGraphAddMemcpyNode (void **a0, void *a1, const void **a2, size_t a3, const void *a4, CUcontext a5)
#define TD_ARGS_cuGraphAddMemcpyNode (a0, a1, a2, a3, a4, a5)
#define TD_WORK_cuGraphAddMemcpyNode (NULL, 0, 0, 0)
#define TD_SPANS_cuGraphAddMemcpyNode (TD_COPY_3D(a4))
#define TD_PARAMS_cuGraphAddMemsetNode (void **a0, void *a1, const void **a2, size_t a3, const void *a4, CUcontext a5)
#define TD_ARGS_cuGraphAddMemsetNode (a0, a1, a2, a3, a4, a5)
#define TD_WORK_cuGraphAddMemsetNode (NULL, 0, 0, 0)
#define TD_SPANS_cuGraphAddMemsetNode (TD_SET(a4))
#define TD_PARAMS_cuGraphAddNode (void **a0, void *a1, const void **a2, size_t a3, void *a4)
#define TD_ARGS_cuGraphAddNode (a0, a1, a2, a3, a4)
#define TD_WORK_cuGraphAddNode (NULL, 0, 0, 0)
#define TD_SPANS_cuGraphAddNode (TD_NODE(a4))
#define TD_PARAMS_cuGraphAddNode_v2 (void **a0, void *a1, const void **a2, const void *a3, size_t a4, void *a5)
#define TD_ARGS_cuGraphAddNode_v2 (a0, a1, a2, a3, a4, a5)
#define TD_WORK_cuGraphAddNode_v2 (NULL, 0, 0, 0)
#define TD_SPANS_cuGraphAddNode_v2 (TD_NODE(a5))
#define TD_PARAMS_cuGraphBatchMemOpNodeGetParams (void *a0, void *a1)
#define TD_ARGS_cuGraphBatchMemOpNodeGetParams (a0, a1)
#define TD_WORK_cuGraphBatchMemOpNodeGetParams (NULL, 0, 0, 0)
#define TD_SPANS_cuGraphBatchMemOpNodeGetParams false
#define TD_PARAMS_cuGraphBatchMemOpNodeSetParams (void *a0, const void *a1)
#define TD_ARGS_cuGraphBatchMemOpNodeSetParams (a0, a1)
#define TD_WORK_cuGraphBatchMemOpNodeSetParams (NULL, 0, 0, 0)
#define TD_SPANS_cuGraphBatchMemOpNodeSetParams false
#define TD_PARAMS_cuGraphChildGraphNodeGetGraph (void *a0, void **a1)
#define TD_ARGS_cuGraphChildGraphNodeGetGraph (a0, a1)
#define TD_WORK_cuGraphChildGraphNodeGetGraph (NULL, 0, 0, 0)
#define TD_SPANS_cuGraphChildGraphNodeGetGraph false
#define TD_PARAMS_cuGraphClone (void **a0, void *a1)
#define TD_ARGS_cuGraphClone (a0, a1)
#define TD_WORK_cuGraphClone (NULL, 0, 0, 0)
#define TD_SPANS_cuGraphClone false
#define TD_PARAMS_cuGraphConditionalHandleCreate (uint64_t *a0, void *a1, CUcontext a2, unsigned int a3, unsigned int a4)
#define TD_ARGS_cuGraphConditionalHandleCreate (a0, a1, a2, a3, a4)
#define TD_WORK_cuGraphConditionalHandleCreate (NULL, 0, 0, 0)
#define TD_SPANS_cuGraphConditionalHandleCreate false
#define TD_PARAMS_cuGraphCreate (void **a0, unsigned int a1)
#define TD_ARGS_cuGraphCreate (a0, a1)
#define TD_WORK_cuGraphCreate (NULL, 0, 0, 0)
#define TD_SPANS_cuGraphCreate false
#define TD_PARAMS_cuGraphDebugDotPrint (void *a0, const char *a1, unsigned int a2)
#define TD_ARGS_cuGraphDebugDotPrint (a0, a1, a2)
#define TD_WORK_cuGraphDebugDotPrint (NULL, 0, 0, 0)
#define TD_SPANS_cuGraphDebugDotPrint false
#define TD_PARAMS_cuGraphDestroy (void *a0)
#define TD_ARGS_cuGraphDestroy (a0)
#define TD_WORK_cuGraphDestroy (NULL, 0, 0, 0)
#define TD_SPANS_cuGraphDestroy false
#define TD_PARAMS_cuGraphDestroyNode (void *a0)
#define TD_ARGS_cuGraphDestroyNode (a0)
#define TD_WORK_cuGraphDestroyNode (NULL, 0, 0, 0)
#define TD_SPANS_cuGraphDestroyNode false
#define TD_PARAMS_cuGraphEventRecordNodeGetEvent (void *a0, CUevent *a1)
#define TD_ARGS_cuGraphEventRecordNodeGetEvent (a0, a1)
#define TD_WORK_cuGraphEventRecordNodeGetEvent (NULL, 0, 0, 0)
#define TD_SPANS_cuGraphEventRecordNodeGetEvent false
#define TD_PARAMS_cuGraphEventRecordNodeSetEvent (void *a0, CUevent a1)
#define TD_ARGS_cuGraphEventRecordNodeSetEvent (a0, a1)
#define TD_WORK_cuGraphEventRecordNodeSetEvent (NULL, 0, 0, 0)
#define TD_SPANS_cuGraphEventRecordNodeSetEvent false
#define TD_PARAMS_cuGraphEventWaitNodeGetEvent (void *a0, CUevent *a1)
#define TD_ARGS_cuGraphEventWaitNodeGetEvent (a0, a1)
#define TD_WORK_cuGraphEventWaitNodeGetEvent (NULL, 0, 0, 0)
#define TD_SPANS_cuGraphEventWaitNodeGetEvent false
#define TD_PARAMS_cuGraphEventWaitNodeSetEvent (void *a0, CUevent a1)
#define TD_ARGS_cuGraphEventWaitNodeSetEvent (a0, a1)
#define TD_WORK_cuGraphEventWaitNodeSetEvent (NULL, 0, 0, 0)
#define TD_SPANS_cuGraphEventWaitNodeSetEvent false
#define TD_PARAMS_cuGraphExecBatchMemOpNodeSetParams (void *a0, void *a1, const void *a2)
#define TD_ARGS_cuGraphExecBatchMemOpNodeSetParams (a0, a1, a2)
#define TD_WORK_cuGraphExecBatchMemOpNodeSetParams (a0, 0, 0, 0)
#define TD_SPANS_cuGraphExecBatchMemOpNodeSetParams false
#define TD_PARAMS_cuGraphExecChildGraphNodeSetParams (void *a0, void *a1, void *a2)
#define TD_ARGS_cuGraphExecChildGraphNodeSetParams (a0, a1, a2)
#define TD_WORK_cuGraphExecChildGraphNodeSetParams (a0, 0, 0, 0)
#define TD_SPANS_cuGraphExecChildGraphNodeSetParams false
#define TD_PARAMS_cuGraphExecDestroy (void *a0)
#define TD_ARGS_cuGraphExecDestroy (a0)
#define TD_WORK_cuGraphExecDestroy (a0, 0, 0, 0)
#define TD_SPANS_cuGraphExecDestroy false
#define TD_PARAMS_cuGraphExecEventRecordNodeSetEvent (void *a0, void *a1, CUevent a2)
#define TD_ARGS_cuGraphExecEventRecordNodeSetEvent (a0, a1, a2)
#define TD_WORK_cuGraphExecEventRecordNodeSetEvent (a0, 0, 0, 0)
#define TD_SPANS_cuGraphExecEventRecordNodeSetEvent false
#define TD_PARAMS_cuGraphExecEventWaitNodeSetEvent (void *a0, void *a1, CUevent a2)
#define TD_ARGS_cuGraphExecEventWaitNodeSetEvent (a0, a1, a2)
#define TD_WORK_cuGraphExecEventWaitNodeSetEvent (a0, 0, 0, 0)
#define TD_SPANS_cuGraphExecEventWaitNodeSetEvent false
#define TD_PARAMS_cuGraphExecExternalSemaphoresSignalNodeSetParams (void *a0, void *a1, const void *a2)
#define TD_ARGS_cuGraphExecExternalSemaphoresSignalNodeSetParams (a0, a1, a2)
#define TD_WORK_cuGraphExecExternalSemaphoresSignalNodeSetParams (a0, 0, 0, 0)
#define TD_SPANS_cuGraphExecExternalSemaphoresSignalNodeSetParams false
#define TD_PARAMS_cuGraphExecExternalSemaphoresWaitNodeSetParams (void *a0, void *a1, const void *a2)
#define TD_ARGS_cuGraphExecExternalSemaphoresWaitNodeSetParams (a0, a1, a2)
#define TD_WORK_cuGraphExecExternalSemaphoresWaitNodeSetParams (a0, 0, 0, 0)
#define TD_SPANS_cuGraphExecExternalSemaphoresWaitNodeSetParams false
#define TD_PARAMS_cuGraphExecGetFlags (void *a0, uint64_t *a1)
#define TD_ARGS_cuGraphExecGetFlags (a0, a1)
#define TD_WORK_cuGraphExecGetFlags (a0, 0, 0, 0)
#define TD_SPANS_cuGraphExecGetFlags false
#define TD_PARAMS_cuGraphExecHostNodeSetParams (void *a0, void *a1, const void *a2)
#define TD_ARGS_cuGraphExecHostNodeSetParams (a0, a1, a2)
#define TD_WORK_cuGraphExecHostNodeSetParams (a0, 0, 0, 0)
#define TD_SPANS_cuGraphExecHostNodeSetParams false
#define TD_PARAMS_cuGraphExecKernelNodeSetParams (void *a0, void *a1, const void *a2)
#define TD_ARGS_cuGraphExecKernelNodeSetParams (a0, a1, a2)
#define TD_WORK_cuGraphExecKernelNodeSetParams (a0, 0, 0, 0)
#define TD_SPANS_cuGraphExecKernelNodeSetParams false
#define TD_PARAMS_cuGraphExecKernelNodeSetParams_v2 (void *a0, void *a1, const void *a2)
#define TD_ARGS_cuGraphExecKernelNodeSetParams_v2 (a0, a1, a2)
#define TD_WORK_cuGraphExecKernelNodeSetParams_v2 (a0, 0, 0, 0)
#define TD_SPANS_cuGraphExecKernelNodeSetParams_v2 false
#define TD_PARAMS_cuGraphExecMemcpyNodeSetParams (void *a0, void *a1, const void *a2, CUcontext a3)
#define TD_ARGS_cuGraphExecMemcpyNodeSetParams (a0, a1, a2, a3)
#define TD_WORK_cuGraphExecMemcpyNodeSetParams (a0, 0, 0, 0)
#define TD_SPANS_cuGraphExecMemcpyNodeSetParams (TD_COPY_3D(a2))
#define TD_PARAMS_cuGraphExecMemsetNodeSetParams (void *a0, void *a1, const void *a2, CUcontext a3)
#define TD_ARGS_cuGraphExecMemsetNodeSetParams (a0, a1, a2, a3)
#define TD_WORK_cuGraphExecMemsetNodeSetParams (a0, 0, 0, 0)
#define TD_SPANS_cuGraphExecMemsetNodeSetParams (TD_SET(a2))
#define TD_PARAMS_cuGraphExecNodeSetParams (void *a0, void *a1, void *a2)
#define TD_ARGS_cuGraphExecNodeSetParams (a0, a1, a2)
#define TD_WORK_cuGraphExecNodeSetParams (a0, 0, 0, 0)
#define TD_SPANS_cuGraphExecNodeSetParams (TD_NODE(a2))
#define TD_PARAMS_cuGraphExecUpdate (void *a0, void *a1, void **a2, int *a3)
#define TD_ARGS_cuGraphExecUpdate (a0, a1, a2, a3)
#define TD_WORK_cuGraphExecUpdate (a0, 0, 0, 0)
#define TD_SPANS_cuGraphExecUpdate false
#define TD_PARAMS_cuGraphExecUpdate_v2 (void *a0, void *a1, void *a2)
#define TD_ARGS_cuGraphExecUpdate_v2 (a0, a1, a2)
#define TD_WORK_cuGraphExecUpdate_v2 (a0, 0, 0, 0)
#define TD_SPANS_cuGraphExecUpdate_v2 false
#define TD_PARAMS_cuGraphExternalSemaphoresSignalNodeGetParams (void *a0, void *a1)
#define TD_ARGS_cuGraphExternalSemaphoresSignalNodeGetParams (a0, a1)
#define TD_WORK_cuGraphExternalSemaphoresSignalNodeGetParams (NULL, 0, 0, 0)
#define TD_SPANS_cuGraphExternalSemaphoresSignalNodeGetParams false
#define TD_PARAMS_cuGraphExternalSemaphoresSignalNodeSetParams (void *a0, const void *a1)
#define TD_ARGS_cuGraphExternalSemaphoresSignalNodeSetParams (a0, a1)
#define TD_WORK_cuGraphExternalSemaphoresSignalNodeSetParams (NULL, 0, 0, 0)
#define TD_SPANS_cuGraphExternalSemaphoresSignalNodeSetParams false
#define TD_PARAMS_cuGraphExternalSemaphoresWaitNodeGetParams (void *a0, void *a1)
#define TD_ARGS_cuGraphExternalSemaphoresWaitNodeGetParams (a0, a1)
#define TD_WORK_cuGraphExternalSemaphoresWaitNodeGetParams (NULL, 0, 0, 0)
#define TD_SPANS_cuGraphExternalSemaphoresWaitNodeGetParams false
#define TD_PARAMS_cuGraphExternalSemaphoresWaitNodeSetParams (void *a0, const void *a1)
#define TD_ARGS_cuGraphExternalSemaphoresWaitNodeSetParams (a0, a1)
#define TD_WORK_cuGraphExternalSemaphoresWaitNodeSetParams (NULL, 0, 0, 0)
#define TD_SPANS_cuGraphExternalSemaphoresWaitNodeSetParams false
#define TD_PARAMS_cuGraphGetEdges (void *a0, void **a1, void **a2, size_t *a3)
#define TD_ARGS_cuGraphGetEdges (a0, a1, a2, a3)
#define TD_WORK_cuGraphGetEdges (NULL, 0, 0, 0)
#define TD_SPANS_cuGraphGetEdges false
#define TD_PARAMS_cuGraphGetEdges_v2 (void *a0, void **a1, void **a2, void *a3, size_t *a4)
#define TD_ARGS_cuGraphGetEdges_v2 (a0, a1, a2, a3, a4)
#define TD_WORK_cuGraphGetEdges_v2 (NULL, 0, 0, 0)
#define TD_SPANS_cuGraphGetEdges_v2 false
#define TD_PARAMS_cuGraphGetNodes (void *a0, void **a1, size_t *a2)
#define TD_ARGS_cuGraphGetNodes (a0, a1, a2)
#define TD_WORK_cuGraphGetNodes (NULL, 0, 0, 0)
#define TD_SPANS_cuGraphGetNodes false
#define TD_PARAMS_cuGraphGetRootNodes (void *a0, void **a1, size_t *a2)
#define TD_ARGS_cuGraphGetRootNodes (a0, a1, a2)
#define TD_WORK_cuGraphGetRootNodes (NULL, 0, 0, 0)
#define TD_SPANS_cuGraphGetRootNodes false
#define TD_PARAMS_cuGraphHostNodeGetParams (void *a0, void *a1)
#define TD_ARGS_cuGraphHostNodeGetParams (a0, a1)
#define TD_WORK_cuGraphHostNodeGetParams (NULL, 0, 0, 0)
#define TD_SPANS_cuGraphHostNodeGetParams false
#define TD_PARAMS_cuGraphHostNodeSetParams (void *a0, const void *a1)
#define TD_ARGS_cuGraphHostNodeSetParams (a0, a1)
#define TD_WORK_cuGraphHostNodeSetParams (NULL, 0, 0, 0)
#define TD_SPANS_cuGraphHostNodeSetParams false
#define TD_PARAMS_cuGraphInstantiate (void **a0, void *a1, void **a2, char *a3, size_t a4)
#define TD_ARGS_cuGraphInstantiate (a0, a1, a2, a3, a4)
#define TD_WORK_cuGraphInstantiate (NULL, 0, 0, 0)
#define TD_SPANS_cuGraphInstantiate false
#define TD_PARAMS_cuGraphInstantiate_v2 (void **a0, void *a1, void **a2, char *a3, size_t a4)
#define TD_ARGS_cuGraphInstantiate_v2 (a0, a1, a2, a3, a4)
#define TD_WORK_cuGraphInstantiate_v2 (NULL, 0, 0, 0)
#define TD_SPANS_cuGraphInstantiate_v2 false
#define TD_PARAMS_cuGraphInstantiateWithFlags (void **a0, void *a1, unsigned long long a2)
#define TD_ARGS_cuGraphInstantiateWithFlags (a0, a1, a2)
#define TD_WORK_cuGraphInstantiateWithFlags (NULL, 0, 0, 0)
#define TD_SPANS_cuGraphInstantiateWithFlags false
#define TD_PARAMS_cuGraphInstantiateWithParams (void **a0, void *a1, void *a2)
#define TD_ARGS_cuGraphInstantiateWithParams (a0, a1, a2)
#define TD_WORK_cuGraphInstantiateWithParams (NULL, 0, 0, 0)
#define TD_SPANS_cuGraphInstantiateWithParams false
#define TD_PARAMS_cuGraphInstantiateWithParams_ptsz (void **a0, void *a1, void *a2)
#define TD_ARGS_cuGraphInstantiateWithParams_ptsz (a0, a1, a2)
#define TD_WORK_cuGraphInstantiateWithParams_ptsz (NULL, 0, 0, 0)
#define TD_SPANS_cuGraphInstantiateWithParams_ptsz false
#define TD_PARAMS_cuGraphKernelNodeCopyAttributes (void *a0, void *a1)
#define TD_ARGS_cuGraphKernelNodeCopyAttributes (a0, a1)
#define TD_WORK_cuGraphKernelNodeCopyAttributes (NULL, 0, 0, 0)
#define TD_SPANS_cuGraphKernelNodeCopyAttributes false
#define TD_PARAMS_cuGraphKernelNodeGetAttribute (void *a0, int a1, void *a2)
#define TD_ARGS_cuGraphKernelNodeGetAttribute (a0, a1, a2)
#define TD_WORK_cuGraphKernelNodeGetAttribute (NULL, 0, 0, 0)
#define TD_SPANS_cuGraphKernelNodeGetAttribute false
#define TD_PARAMS_cuGraphKernelNodeGetParams (void *a0, void *a1)
#define TD_ARGS_cuGraphKernelNodeGetParams (a0, a1)
#define TD_WORK_cuGraphKernelNodeGetParams (NULL, 0, 0, 0)
#define TD_SPANS_cuGraphKernelNodeGetParams false
#define TD_PARAMS_cuGraphKernelNodeGetParams_v2 (void *a0, void *a1)
#define TD_ARGS_cuGraphKernelNodeGetParams_v2 (a0, a1)
#define TD_WORK_cuGraphKernelNodeGetParams_v2 (NULL, 0, 0, 0)
#define TD_SPANS_cuGraphKernelNodeGetParams_v2 false
#define TD_PARAMS_cuGraphKernelNodeSetAttribute (void *a0, int a1, const void *a2)
#define TD_ARGS_cuGraphKernelNodeSetAttribute (a0, a1, a2)
#define TD_WORK_cuGraphKernelNodeSetAttribute (NULL, 0, 0, 0)
#define TD_SPANS_cuGraphKernelNodeSetAttribute false
#define TD_PARAMS_cuGraphKernelNodeSetParams (void *a0, const void *a1)
#define TD_ARGS_cuGraphKernelNodeSetParams (a0, a1)
#define TD_WORK_cuGraphKernelNodeSetParams (NULL, 0, 0, 0)
#define TD_SPANS_cuGraphKernelNodeSetParams false
#define TD_PARAMS_cuGraphKernelNodeSetParams_v2 (void *a0, const void *a1)
#define TD_ARGS_cuGraphKernelNodeSetParams_v2 (a0, a1)
#define TD_WORK_cuGraphKernelNodeSetParams_v2 (NULL, 0, 0, 0)
#define TD_SPANS_cuGraphKernelNodeSetParams_v2 false
#define TD_PARAMS_cuGraphLaunch (void *a0, CUstream stream)
#define TD_ARGS_cuGraphLaunch (a0, stream)
#define TD_WORK_cuGraphLaunch (a0, 0, 0, 0)
#define TD_SPANS_cuGraphLaunch false
#define TD_PARAMS_cuGraphLaunch_ptsz (void *a0, CUstream stream)
#define TD_ARGS_cuGraphLaunch_ptsz (a0, stream)
#define TD_WORK_cuGraphLaunch_ptsz (a0, 0, 0, 0)
#define TD_SPANS_cuGraphLaunch_ptsz false
#define TD_PARAMS_cuGraphMemAllocNodeGetParams (void *a0, void *a1)
#define TD_ARGS_cuGraphMemAllocNodeGetParams (a0, a1)
#define TD_WORK_cuGraphMemAllocNodeGetParams (NULL, 0, 0, 0)
#define TD_SPANS_cuGraphMemAllocNodeGetParams false
#define TD_PARAMS_cuGraphMemFreeNodeGetParams (void *a0, CUdeviceptr *a1)
#define TD_ARGS_cuGraphMemFreeNodeGetParams (a0, a1)
#define TD_WORK_cuGraphMemFreeNodeGetParams (NULL, 0, 0, 0)
#define TD_SPANS_cuGraphMemFreeNodeGetParams false
#define TD_PARAMS_cuGraphMemcpyNodeGetParams (void *a0, void *a1)
#define TD_ARGS_cuGraphMemcpyNodeGetParams (a0, a1)
#define TD_WORK_cuGraphMemcpyNodeGetParams (NULL, 0, 0, 0)
#define TD_SPANS_cuGraphMemcpyNodeGetParams false
#define TD_PARAMS_cuGraphMemcpyNodeSetParams (void *a0, const void *a1)
#define TD_ARGS_cuGraphMemcpyNodeSetParams (a0, a1)
#define TD_WORK_cuGraphMemcpyNodeSetParams (NULL, 0, 0, 0)
#define TD_SPANS_cuGraphMemcpyNodeSetParams (TD_COPY_3D(a1))
#define TD_PARAMS_cuGraphMemsetNodeGetParams (void *a0, void *a1)
#define TD_ARGS_cuGraphMemsetNodeGetParams (a0, a1)
#define TD_WORK_cuGraphMemsetNodeGetParams (NULL, 0, 0, 0)
#define TD_SPANS_cuGraphMemsetNodeGetParams false
#define TD_PARAMS_cuGraphMemsetNodeSetParams (void *a0, const void *a1)
#define TD_ARGS_cuGraphMemsetNodeSetParams (a0, a1)
#define TD_WORK_cuGraphMemsetNodeSetParams (NULL, 0, 0, 0)
#define TD_SPANS_cuGraphMemsetNodeSetParams (TD_SET(a1))
#define TD_PARAMS_cuGraphNodeFindInClone (void **a0, void *a1, void *a2)
#define TD_ARGS_cuGraphNodeFindInClone (a0, a1, a2)
#define TD_WORK_cuGraphNodeFindInClone (NULL, 0, 0, 0)
#define TD_SPANS_cuGraphNodeFindInClone false
#define TD_PARAMS_cuGraphNodeGetDependencies (void *a0, void **a1, size_t *a2)
#define TD_ARGS_cuGraphNodeGetDependencies (a0, a1, a2)
#define TD_WORK_cuGraphNodeGetDependencies (NULL, 0, 0, 0)
#define TD_SPANS_cuGraphNodeGetDependencies false
#define TD_PARAMS_cuGraphNodeGetDependencies_v2 (void *a0, void **a1, void *a2, size_t *a3)
#define TD_ARGS_cuGraphNodeGetDependencies_v2 (a0, a1, a2, a3)
#define TD_WORK_cuGraphNodeGetDependencies_v2 (NULL, 0, 0, 0)
#define TD_SPANS_cuGraphNodeGetDependencies_v2 false
#define TD_PARAMS_cuGraphNodeGetDependentNodes (void *a0, void **a1, size_t *a2)
#define TD_ARGS_cuGraphNodeGetDependentNodes (a0, a1, a2)
#define TD_WORK_cuGraphNodeGetDependentNodes (NULL, 0, 0, 0)
#define TD_SPANS_cuGraphNodeGetDependentNodes false
#define TD_PARAMS_cuGraphNodeGetDependentNodes_v2 (void *a0, void **a1, void *a2, size_t *a3)
#define TD_ARGS_cuGraphNodeGetDependentNodes_v2 (a0, a1, a2, a3)
#define TD_WORK_cuGraphNodeGetDependentNodes_v2 (NULL, 0, 0, 0)
#define TD_SPANS_cuGraphNodeGetDependentNodes_v2 false
#define TD_PARAMS_cuGraphNodeGetEnabled (void *a0, void *a1, unsigned int *a2)
#define TD_ARGS_cuGraphNodeGetEnabled (a0, a1, a2)
#define TD_WORK_cuGraphNodeGetEnabled (a0, 0, 0, 0)
#define TD_SPANS_cuGraphNodeGetEnabled false
#define TD_PARAMS_cuGraphNodeGetType (void *a0, int *a1)
#define TD_ARGS_cuGraphNodeGetType (a0, a1)
#define TD_WORK_cuGraphNodeGetType (NULL, 0, 0, 0)
#define TD_SPANS_cuGraphNodeGetType false
#define TD_PARAMS_cuGraphNodeSetEnabled (void *a0, void *a1, unsigned int a2)
#define TD_ARGS_cuGraphNodeSetEnabled (a0, a1, a2)
#define TD_WORK_cuGraphNodeSetEnabled (a0, 0, 0, 0)
#define TD_SPANS_cuGraphNodeSetEnabled false
#define TD_PARAMS_cuGraphNodeSetParams (void *a0, void *a1)
#define TD_ARGS_cuGraphNodeSetParams (a0, a1)
#define TD_WORK_cuGraphNodeSetParams (NULL, 0, 0, 0)
#define TD_SPANS_cuGraphNodeSetParams (TD_NODE(a1))
#define TD_PARAMS_cuGraphReleaseUserObject (void *a0, void *a1, unsigned int a2)
#define TD_ARGS_cuGraphReleaseUserObject (a0, a1, a2)
#define TD_WORK_cuGraphReleaseUserObject (NULL, 0, 0, 0)
#define TD_SPANS_cuGraphReleaseUserObject false
#define TD_PARAMS_cuGraphRemoveDependencies (void *a0, const void **a1, const void **a2, size_t a3)
#define TD_ARGS_cuGraphRemoveDependencies (a0, a1, a2, a3)
#define TD_WORK_cuGraphRemoveDependencies (NULL, 0, 0, 0)
#define TD_SPANS_cuGraphRemoveDependencies false
#define TD_PARAMS_cuGraphRemoveDependencies_v2 (void *a0, const void **a1, const void **a2, const void *a3, size_t a4)
#define TD_ARGS_cuGraphRemoveDependencies_v2 (a0, a1, a2, a3, a4)
#define TD_WORK_cuGraphRemoveDependencies_v2 (NULL, 0, 0, 0)
#define TD_SPANS_cuGraphRemoveDependencies_v2 false
#define TD_PARAMS_cuGraphRetainUserObject (void *a0, void *a1, unsigned int a2, unsigned int a3)
#define TD_ARGS_cuGraphRetainUserObject (a0, a1, a2, a3)
#define TD_WORK_cuGraphRetainUserObject (NULL, 0, 0, 0)
#define TD_SPANS_cuGraphRetainUserObject false
#define TD_PARAMS_cuGraphUpload (void *a0, CUstream stream)
#define TD_ARGS_cuGraphUpload (a0, stream)
#define TD_WORK_cuGraphUpload (a0, 0, 0, 0)
#define TD_SPANS_cuGraphUpload false
#define TD_PARAMS_cuGraphUpload_ptsz (void *a0, CUstream stream)
#define TD_ARGS_cuGraphUpload_ptsz (a0, stream)
#define TD_WORK_cuGraphUpload_ptsz (a0, 0, 0, 0)
#define TD_SPANS_cuGraphUpload_ptsz false
#define TD_PARAMS_cuGraphicsMapResources (unsigned int a0, void **a1, CUstream stream)
#define TD_ARGS_cuGraphicsMapResources (a0, a1, stream)
#define TD_WORK_cuGraphicsMapResources (NULL, 0, 0, 0)
#define TD_SPANS_cuGraphicsMapResources false
#define TD_PARAMS_cuGraphicsMapResources_ptsz (unsigned int a0, void **a1, CUstream stream)
#define TD_ARGS_cuGraphicsMapResources_ptsz (a0, a1, stream)
#define TD_WORK_cuGraphicsMapResources_ptsz (NULL, 0, 0, 0)
#define TD_SPANS_cuGraphicsMapResources_ptsz false
#define TD_PARAMS_cuGraphicsResourceGetMappedMipmappedArray (void **a0, void *a1)
#define TD_ARGS_cuGraphicsResourceGetMappedMipmappedArray (a0, a1)
#define TD_WORK_cuGraphicsResourceGetMappedMipmappedArray (NULL, 0, 0, 0)
#define TD_SPANS_cuGraphicsResourceGetMappedMipmappedArray false
#define TD_PARAMS_cuGraphicsResourceGetMappedPointer (unsigned int *a0, unsigned int *a1, void *a2)
#define TD_ARGS_cuGraphicsResourceGetMappedPointer (a0, a1, a2)
#define TD_WORK_cuGraphicsResourceGetMappedPointer (NULL, 0, 0, 0)
#define TD_SPANS_cuGraphicsResourceGetMappedPointer false
#define TD_PARAMS_cuGraphicsResourceGetMappedPointer_v2 (CUdeviceptr *a0, size_t *a1, void *a2)
#define TD_ARGS_cuGraphicsResourceGetMappedPointer_v2 (a0, a1, a2)
#define TD_WORK_cuGraphicsResourceGetMappedPointer_v2 (NULL, 0, 0, 0)
#define TD_SPANS_cuGraphicsResourceGetMappedPointer_v2 false
#define TD_PARAMS_cuGraphicsResourceSetMapFlags (void *a0, unsigned int a1)
#define TD_ARGS_cuGraphicsResourceSetMapFlags (a0, a1)
#define TD_WORK_cuGraphicsResourceSetMapFlags (NULL, 0, 0, 0)
#define TD_SPANS_cuGraphicsResourceSetMapFlags false
#define TD_PARAMS_cuGraphicsResourceSetMapFlags_v2 (void *a0, unsigned int a1)
#define TD_ARGS_cuGraphicsResourceSetMapFlags_v2 (a0, a1)
#define TD_WORK_cuGraphicsResourceSetMapFlags_v2 (NULL, 0, 0, 0)
#define TD_SPANS_cuGraphicsResourceSetMapFlags_v2 false
#define TD_PARAMS_cuGraphicsSubResourceGetMappedArray (void **a0, void *a1, unsigned int a2, unsigned int a3)
#define TD_ARGS_cuGraphicsSubResourceGetMappedArray (a0, a1, a2, a3)
#define TD_WORK_cuGraphicsSubResourceGetMappedArray (NULL, 0, 0, 0)
#define TD_SPANS_cuGraphicsSubResourceGetMappedArray false
#define TD_PARAMS_cuGraphicsUnmapResources (unsigned int a0, void **a1, CUstream stream)
#define TD_ARGS_cuGraphicsUnmapResources (a0, a1, stream)
#define TD_WORK_cuGraphicsUnmapResources (NULL, 0, 0, 0)
#define TD_SPANS_cuGraphicsUnmapResources false
#define TD_PARAMS_cuGraphicsUnmapResources_ptsz (unsigned int a0, void **a1, CUstream stream)
#define TD_ARGS_cuGraphicsUnmapResources_ptsz (a0, a1, stream)
#define TD_WORK_cuGraphicsUnmapResources_ptsz (NULL, 0, 0, 0)
#define TD_SPANS_cuGraphicsUnmapResources_ptsz false
#define TD_PARAMS_cuGraphicsUnregisterResource (void *a0)
#define TD_ARGS_cuGraphicsUnregisterResource (a0)
#define TD_WORK_cuGraphicsUnregisterResource (NULL, 0, 0, 0)
#define TD_SPANS_cuGraphicsUnregisterResource false
#define TD_PARAMS_cuGreenCtxCreate (void **a0, void *a1, CUdevice a2, unsigned int a3)
#define TD_ARGS_cuGreenCtxCreate (a0, a1, a2, a3)
#define TD_WORK_cuGreenCtxCreate (NULL, 0, 0, 0)
#define TD_SPANS_cuGreenCtxCreate false
#define TD_PARAMS_cuGreenCtxDestroy (void *a0)
#define TD_ARGS_cuGreenCtxDestroy (a0)
#define TD_WORK_cuGreenCtxDestroy (NULL, 0, 0, 0)
#define TD_SPANS_cuGreenCtxDestroy false
#define TD_PARAMS_cuGreenCtxGetDevResource (void *a0, void *a1, int a2)
#define TD_ARGS_cuGreenCtxGetDevResource (a0, a1, a2)
#define TD_WORK_cuGreenCtxGetDevResource (NULL, 0, 0, 0)
#define TD_SPANS_cuGreenCtxGetDevResource false
#define TD_PARAMS_cuGreenCtxGetId (void *a0, unsigned long long *a1)
#define TD_ARGS_cuGreenCtxGetId (a0, a1)
#define TD_WORK_cuGreenCtxGetId (NULL, 0, 0, 0)
#define TD_SPANS_cuGreenCtxGetId false
#define TD_PARAMS_cuGreenCtxRecordEvent (void *a0, CUevent a1)
#define TD_ARGS_cuGreenCtxRecordEvent (a0, a1)
#define TD_WORK_cuGreenCtxRecordEvent (NULL, 0, 0, 0)
#define TD_SPANS_cuGreenCtxRecordEvent false
#define TD_PARAMS_cuGreenCtxStreamCreate (CUstream *a0, void *a1, unsigned int a2, int a3)
#define TD_ARGS_cuGreenCtxStreamCreate (a0, a1, a2, a3)
#define TD_WORK_cuGreenCtxStreamCreate (NULL, 0, 0, 0)
#define TD_SPANS_cuGreenCtxStreamCreate false
#define TD_PARAMS_cuGreenCtxWaitEvent (void *a0, CUevent a1)
#define TD_ARGS_cuGreenCtxWaitEvent (a0, a1)
#define TD_WORK_cuGreenCtxWaitEvent (NULL, 0, 0, 0)
#define TD_SPANS_cuGreenCtxWaitEvent false
#define TD_PARAMS_cuImportExternalMemory (void **a0, const void *a1)
#define TD_ARGS_cuImportExternalMemory (a0, a1)
#define TD_WORK_cuImportExternalMemory (NULL, 0, 0, 0)
#define TD_SPANS_cuImportExternalMemory false
#define TD_PARAMS_cuImportExternalSemaphore (void **a0, const void *a1)
#define TD_ARGS_cuImportExternalSemaphore (a0, a1)
#define TD_WORK_cuImportExternalSemaphore (NULL, 0, 0, 0)
#define TD_SPANS_cuImportExternalSemaphore false
#define TD_PARAMS_cuInit (unsigned int a0)
#define TD_ARGS_cuInit (a0)
#define TD_WORK_cuInit (NULL, 0, 0, 0)
#define TD_SPANS_cuInit false
#define TD_PARAMS_cuIpcCloseMemHandle (CUdeviceptr a0)
#define TD_ARGS_cuIpcCloseMemHandle (a0)
#define TD_WORK_cuIpcCloseMemHandle (NULL, 0, 0, 0)
#define TD_SPANS_cuIpcCloseMemHandle false
#define TD_PARAMS_cuIpcGetEventHandle (CUipcEventHandle *a0, CUevent a1)
#define TD_ARGS_cuIpcGetEventHandle (a0, a1)
#define TD_WORK_cuIpcGetEventHandle (NULL, 0, 0, 0)
#define TD_SPANS_cuIpcGetEventHandle false
#define TD_PARAMS_cuIpcGetMemHandle (CUipcMemHandle *a0, CUdeviceptr a1)
#define TD_ARGS_cuIpcGetMemHandle (a0, a1)
#define TD_WORK_cuIpcGetMemHandle (NULL, 0, 0, 0)
#define TD_SPANS_cuIpcGetMemHandle false
#define TD_PARAMS_cuIpcOpenEventHandle (CUevent *a0, CUipcEventHandle a1)
#define TD_ARGS_cuIpcOpenEventHandle (a0, a1)
#define TD_WORK_cuIpcOpenEventHandle (NULL, 0, 0, 0)
#define TD_SPANS_cuIpcOpenEventHandle false
#define TD_PARAMS_cuIpcOpenMemHandle (CUdeviceptr *a0, CUipcMemHandle a1, unsigned int a2)
#define TD_ARGS_cuIpcOpenMemHandle (a0, a1, a2)
#define TD_WORK_cuIpcOpenMemHandle (NULL, 0, 0, 0)
#define TD_SPANS_cuIpcOpenMemHandle false
#define TD_PARAMS_cuIpcOpenMemHandle_v2 (CUdeviceptr *a0, CUipcMemHandle a1, unsigned int a2)
#define TD_ARGS_cuIpcOpenMemHandle_v2 (a0, a1, a2)
#define TD_WORK_cuIpcOpenMemHandle_v2 (NULL, 0, 0, 0)
#define TD_SPANS_cuIpcOpenMemHandle_v2 false
#define TD_PARAMS_cuKernelGetAttribute (int *a0, int a1, void *a2, CUdevice a3)
#define TD_ARGS_cuKernelGetAttribute (a0, a1, a2, a3)
#define TD_WORK_cuKernelGetAttribute (NULL, 0, 0, 0)
#define TD_SPANS_cuKernelGetAttribute false
#define TD_PARAMS_cuKernelGetFunction (CUfunction *a0, void *a1)
#define TD_ARGS_cuKernelGetFunction (a0, a1)
#define TD_WORK_cuKernelGetFunction (NULL, 0, 0, 0)
#define TD_SPANS_cuKernelGetFunction false
#define TD_PARAMS_cuKernelGetLibrary (void **a0, void *a1)
#define TD_ARGS_cuKernelGetLibrary (a0, a1)
#define TD_WORK_cuKernelGetLibrary (NULL, 0, 0, 0)
#define TD_SPANS_cuKernelGetLibrary false
#define TD_PARAMS_cuKernelGetName (const char **a0, void *a1)
#define TD_ARGS_cuKernelGetName (a0, a1)
#define TD_WORK_cuKernelGetName (NULL, 0, 0, 0)
#define TD_SPANS_cuKernelGetName false
#define TD_PARAMS_cuKernelGetParamInfo (void *a0, size_t a1, size_t *a2, size_t *a3)
#define TD_ARGS_cuKernelGetParamInfo (a0, a1, a2, a3)
#define TD_WORK_cuKernelGetParamInfo (NULL, 0, 0, 0)
#define TD_SPANS_cuKernelGetParamInfo false
#define TD_PARAMS_cuKernelSetAttribute (int a0, int a1, void *a2, CUdevice a3)
#define TD_ARGS_cuKernelSetAttribute (a0, a1, a2, a3)
#define TD_WORK_cuKernelSetAttribute (NULL, 0, 0, 0)
#define TD_SPANS_cuKernelSetAttribute false
#define TD_PARAMS_cuKernelSetCacheConfig (void *a0, int a1, CUdevice a2)
#define TD_ARGS_cuKernelSetCacheConfig (a0, a1, a2)
#define TD_WORK_cuKernelSetCacheConfig (NULL, 0, 0, 0)
#define TD_SPANS_cuKernelSetCacheConfig false
#define TD_PARAMS_cuLaunch (CUfunction a0)
#define TD_ARGS_cuLaunch (a0)
#define TD_WORK_cuLaunch (NULL, 0, 0, 0)
#define TD_SPANS_cuLaunch false
#define TD_PARAMS_cuLaunchCooperativeKernel (CUfunction a0, unsigned int a1, unsigned int a2, unsigned int a3, unsigned int a4, unsigned int a5, unsigned int a6, unsigned int a7, CUstream stream, void **a9)
#define TD_ARGS_cuLaunchCooperativeKernel (a0, a1, a2, a3, a4, a5, a6, a7, stream, a9)
#define TD_WORK_cuLaunchCooperativeKernel (a0, a1, a2, a3)
#define TD_SPANS_cuLaunchCooperativeKernel false
#define TD_PARAMS_cuLaunchCooperativeKernel_ptsz (CUfunction a0, unsigned int a1, unsigned int a2, unsigned int a3, unsigned int a4, unsigned int a5, unsigned int a6, unsigned int a7, CUstream stream, void **a9)
#define TD_ARGS_cuLaunchCooperativeKernel_ptsz (a0, a1, a2, a3, a4, a5, a6, a7, stream, a9)
#define TD_WORK_cuLaunchCooperativeKernel_ptsz (a0, a1, a2, a3)
#define TD_SPANS_cuLaunchCooperativeKernel_ptsz false
#define TD_PARAMS_cuLaunchCooperativeKernelMultiDevice (void *a0, unsigned int a1, unsigned int a2)
#define TD_ARGS_cuLaunchCooperativeKernelMultiDevice (a0, a1, a2)
#define TD_WORK_cuLaunchCooperativeKernelMultiDevice (NULL, 0, 0, 0)
#define TD_SPANS_cuLaunchCooperativeKernelMultiDevice false
#define TD_PARAMS_cuLaunchGrid (CUfunction a0, int a1, int a2)
#define TD_ARGS_cuLaunchGrid (a0, a1, a2)
#define TD_WORK_cuLaunchGrid (NULL, 0, 0, 0)
#define TD_SPANS_cuLaunchGrid false
#define TD_PARAMS_cuLaunchGridAsync (CUfunction a0, int a1, int a2, CUstream stream)
#define TD_ARGS_cuLaunchGridAsync (a0, a1, a2, stream)
#define TD_WORK_cuLaunchGridAsync (NULL, 0, 0, 0)
#define TD_SPANS_cuLaunchGridAsync false
#define TD_PARAMS_cuLaunchHostFunc (CUstream stream, CUhostFn a1, void *a2)
#define TD_ARGS_cuLaunchHostFunc (stream, a1, a2)
#define TD_WORK_cuLaunchHostFunc (NULL, 0, 0, 0)
#define TD_SPANS_cuLaunchHostFunc false
#define TD_PARAMS_cuLaunchHostFunc_ptsz (CUstream stream, CUhostFn a1, void *a2)
#define TD_ARGS_cuLaunchHostFunc_ptsz (stream, a1, a2)
#define TD_WORK_cuLaunchHostFunc_ptsz (NULL, 0, 0, 0)
#define TD_SPANS_cuLaunchHostFunc_ptsz false
#define TD_PARAMS_cuLaunchKernel (CUfunction a0, unsigned int a1, unsigned int a2, unsigned int a3, unsigned int a4, unsigned int a5, unsigned int a6, unsigned int a7, CUstream stream, void **a9, void **a10)
#define TD_ARGS_cuLaunchKernel (a0, a1, a2, a3, a4, a5, a6, a7, stream, a9, a10)
#define TD_WORK_cuLaunchKernel (a0, a1, a2, a3)
#define TD_SPANS_cuLaunchKernel false
#define TD_PARAMS_cuLaunchKernel_ptsz (CUfunction a0, unsigned int a1, unsigned int a2, unsigned int a3, unsigned int a4, unsigned int a5, unsigned int a6, unsigned int a7, CUstream stream, void **a9, void **a10)
#define TD_ARGS_cuLaunchKernel_ptsz (a0, a1, a2, a3, a4, a5, a6, a7, stream, a9, a10)
#define TD_WORK_cuLaunchKernel_ptsz (a0, a1, a2, a3)
#define TD_SPANS_cuLaunchKernel_ptsz false
#define TD_PARAMS_cuLaunchKernelEx (const CUlaunchConfig *config, CUfunction a1, void **a2, void **a3)
#define TD_ARGS_cuLaunchKernelEx (config, a1, a2, a3)
#define TD_WORK_cuLaunchKernelEx (a1, config ? config->gridDimX : 0, config ? config->gridDimY : 0, config ? config->gridDimZ : 0)
#define TD_SPANS_cuLaunchKernelEx false
#define TD_PARAMS_cuLaunchKernelEx_ptsz (const CUlaunchConfig *config, CUfunction a1, void **a2, void **a3)
#define TD_ARGS_cuLaunchKernelEx_ptsz (config, a1, a2, a3)
#define TD_WORK_cuLaunchKernelEx_ptsz (a1, config ? config->gridDimX : 0, config ? config->gridDimY : 0, config ? config->gridDimZ : 0)
#define TD_SPANS_cuLaunchKernelEx_ptsz false
#define TD_PARAMS_cuLibraryEnumerateKernels (void **a0, unsigned int a1, void *a2)
#define TD_ARGS_cuLibraryEnumerateKernels (a0, a1, a2)
#define TD_WORK_cuLibraryEnumerateKernels (NULL, 0, 0, 0)
#define TD_SPANS_cuLibraryEnumerateKernels false
#define TD_PARAMS_cuLibraryGetGlobal (CUdeviceptr *a0, size_t *a1, void *a2, const char *a3)
#define TD_ARGS_cuLibraryGetGlobal (a0, a1, a2, a3)
#define TD_WORK_cuLibraryGetGlobal (NULL, 0, 0, 0)
#define TD_SPANS_cuLibraryGetGlobal false
#define TD_PARAMS_cuLibraryGetKernel (void **a0, void *a1, const char *a2)
#define TD_ARGS_cuLibraryGetKernel (a0, a1, a2)
#define TD_WORK_cuLibraryGetKernel (NULL, 0, 0, 0)
#define TD_SPANS_cuLibraryGetKernel false
#define TD_PARAMS_cuLibraryGetKernelCount (unsigned int *a0, void *a1)
#define TD_ARGS_cuLibraryGetKernelCount (a0, a1)
#define TD_WORK_cuLibraryGetKernelCount (NULL, 0, 0, 0)
#define TD_SPANS_cuLibraryGetKernelCount false
#define TD_PARAMS_cuLibraryGetManaged (CUdeviceptr *a0, size_t *a1, void *a2, const char *a3)
#define TD_ARGS_cuLibraryGetManaged (a0, a1, a2, a3)
#define TD_WORK_cuLibraryGetManaged (NULL, 0, 0, 0)
#define TD_SPANS_cuLibraryGetManaged false
#define TD_PARAMS_cuLibraryGetModule (CUmodule *a0, void *a1)
#define TD_ARGS_cuLibraryGetModule (a0, a1)
#define TD_WORK_cuLibraryGetModule (NULL, 0, 0, 0)
#define TD_SPANS_cuLibraryGetModule false
#define TD_PARAMS_cuLibraryGetUnifiedFunction (void **a0, void *a1, const char *a2)
#define TD_ARGS_cuLibraryGetUnifiedFunction (a0, a1, a2)
#define TD_WORK_cuLibraryGetUnifiedFunction (NULL, 0, 0, 0)
#define TD_SPANS_cuLibraryGetUnifiedFunction false
#define TD_PARAMS_cuLibraryLoadData (void **a0, const void *a1, int *a2, void **a3, unsigned int a4, int *a5, void **a6, unsigned int a7)
#define TD_ARGS_cuLibraryLoadData (a0, a1, a2, a3, a4, a5, a6, a7)
#define TD_WORK_cuLibraryLoadData (NULL, 0, 0, 0)
#define TD_SPANS_cuLibraryLoadData false
#define TD_PARAMS_cuLibraryLoadFromFile (void **a0, const char *a1, int *a2, void **a3, unsigned int a4, int *a5, void **a6, unsigned int a7)
#define TD_ARGS_cuLibraryLoadFromFile (a0, a1, a2, a3, a4, a5, a6, a7)
#define TD_WORK_cuLibraryLoadFromFile (NULL, 0, 0, 0)
#define TD_SPANS_cuLibraryLoadFromFile false
#define TD_PARAMS_cuLibraryUnload (void *a0)
#define TD_ARGS_cuLibraryUnload (a0)
#define TD_WORK_cuLibraryUnload (NULL, 0, 0, 0)
#define TD_SPANS_cuLibraryUnload false
#define TD_PARAMS_cuLinkAddData (void *a0, int a1, void *a2, size_t a3, const char *a4, unsigned int a5, int *a6, void **a7)
#define TD_ARGS_cuLinkAddData (a0, a1, a2, a3, a4, a5, a6, a7)
#define TD_WORK_cuLinkAddData (NULL, 0, 0, 0)
#define TD_SPANS_cuLinkAddData false
#define TD_PARAMS_cuLinkAddData_v2 (void *a0, int a1, void *a2, size_t a3, const char *a4, unsigned int a5, int *a6, void **a7)
#define TD_ARGS_cuLinkAddData_v2 (a0, a1, a2, a3, a4, a5, a6, a7)
#define TD_WORK_cuLinkAddData_v2 (NULL, 0, 0, 0)
#define TD_SPANS_cuLinkAddData_v2 false
#define TD_PARAMS_cuLinkAddFile (void *a0, int a1, const char *a2, unsigned int a3, int *a4, void **a5)
#define TD_ARGS_cuLinkAddFile (a0, a1, a2, a3, a4, a5)
#define TD_WORK_cuLinkAddFile (NULL, 0, 0, 0)
#define TD_SPANS_cuLinkAddFile false
#define TD_PARAMS_cuLinkAddFile_v2 (void *a0, int a1, const char *a2, unsigned int a3, int *a4, void **a5)
#define TD_ARGS_cuLinkAddFile_v2 (a0, a1, a2, a3, a4, a5)
#define TD_WORK_cuLinkAddFile_v2 (NULL, 0, 0, 0)
#define TD_SPANS_cuLinkAddFile_v2 false
#define TD_PARAMS_cuLinkComplete (void *a0, void **a1, size_t *a2)
#define TD_ARGS_cuLinkComplete (a0, a1, a2)
#define TD_WORK_cuLinkComplete (NULL, 0, 0, 0)
#define TD_SPANS_cuLinkComplete false
#define TD_PARAMS_cuLinkCreate (unsigned int a0, int *a1, void **a2, void **a3)
#define TD_ARGS_cuLinkCreate (a0, a1, a2, a3)
#define TD_WORK_cuLinkCreate (NULL, 0, 0, 0)
#define TD_SPANS_cuLinkCreate false
#define TD_PARAMS_cuLinkCreate_v2 (unsigned int a0, int *a1, void **a2, void **a3)
#define TD_ARGS_cuLinkCreate_v2 (a0, a1, a2, a3)
#define TD_WORK_cuLinkCreate_v2 (NULL, 0, 0, 0)
#define TD_SPANS_cuLinkCreate_v2 false
#define TD_PARAMS_cuLinkDestroy (void *a0)
#define TD_ARGS_cuLinkDestroy (a0)
#define TD_WORK_cuLinkDestroy (NULL, 0, 0, 0)
#define TD_SPANS_cuLinkDestroy false
#define TD_PARAMS_cuLogsCurrent (unsigned int *a0, unsigned int a1)
#define TD_ARGS_cuLogsCurrent (a0, a1)
#define TD_WORK_cuLogsCurrent (NULL, 0, 0, 0)
#define TD_SPANS_cuLogsCurrent false
#define TD_PARAMS_cuLogsDumpToFile (unsigned int *a0, const char *a1, unsigned int a2)
#define TD_ARGS_cuLogsDumpToFile (a0, a1, a2)
#define TD_WORK_cuLogsDumpToFile (NULL, 0, 0, 0)
#define TD_SPANS_cuLogsDumpToFile false
#define TD_PARAMS_cuLogsDumpToMemory (unsigned int *a0, char *a1, size_t *a2, unsigned int a3)
#define TD_ARGS_cuLogsDumpToMemory (a0, a1, a2, a3)
#define TD_WORK_cuLogsDumpToMemory (NULL, 0, 0, 0)
#define TD_SPANS_cuLogsDumpToMemory false
#define TD_PARAMS_cuLogsRegisterCallback (void *a0, void *a1, void **a2)
#define TD_ARGS_cuLogsRegisterCallback (a0, a1, a2)
#define TD_WORK_cuLogsRegisterCallback (NULL, 0, 0, 0)
#define TD_SPANS_cuLogsRegisterCallback false
#define TD_PARAMS_cuLogsUnregisterCallback (void *a0)
#define TD_ARGS_cuLogsUnregisterCallback (a0)
#define TD_WORK_cuLogsUnregisterCallback (NULL, 0, 0, 0)
#define TD_SPANS_cuLogsUnregisterCallback false
#define TD_PARAMS_cuMemAddressFree (CUdeviceptr a0, size_t a1)
#define TD_ARGS_cuMemAddressFree (a0, a1)
#define TD_WORK_cuMemAddressFree (NULL, 0, 0, 0)
#define TD_SPANS_cuMemAddressFree false
#define TD_PARAMS_cuMemAddressReserve (CUdeviceptr *a0, size_t a1, size_t a2, CUdeviceptr a3, unsigned long long a4)
#define TD_ARGS_cuMemAddressReserve (a0, a1, a2, a3, a4)
#define TD_WORK_cuMemAddressReserve (NULL, 0, 0, 0)
#define TD_SPANS_cuMemAddressReserve false
#define TD_PARAMS_cuMemAdvise (CUdeviceptr a0, size_t a1, int a2, CUdevice a3)
#define TD_ARGS_cuMemAdvise (a0, a1, a2, a3)
#define TD_WORK_cuMemAdvise (NULL, 0, 0, 0)
#define TD_SPANS_cuMemAdvise false
#define TD_PARAMS_cuMemAdvise_v2 (CUdeviceptr a0, size_t a1, int a2, CUmemLocation a3)
#define TD_ARGS_cuMemAdvise_v2 (a0, a1, a2, a3)
#define TD_WORK_cuMemAdvise_v2 (NULL, 0, 0, 0)
#define TD_SPANS_cuMemAdvise_v2 false
#define TD_PARAMS_cuMemAlloc (unsigned int *a0, unsigned int a1)
#define TD_ARGS_cuMemAlloc (a0, a1)
#define TD_WORK_cuMemAlloc (NULL, 0, 0, 0)
#define TD_SPANS_cuMemAlloc false
#define TD_PARAMS_cuMemAlloc_v2 (CUdeviceptr *a0, size_t a1)
#define TD_ARGS_cuMemAlloc_v2 (a0, a1)
#define TD_WORK_cuMemAlloc_v2 (NULL, 0, 0, 0)
#define TD_SPANS_cuMemAlloc_v2 false
#define TD_PARAMS_cuMemAllocAsync (CUdeviceptr *a0, size_t a1, CUstream stream)
#define TD_ARGS_cuMemAllocAsync (a0, a1, stream)
#define TD_WORK_cuMemAllocAsync (NULL, 0, 0, 0)
#define TD_SPANS_cuMemAllocAsync false
#define TD_PARAMS_cuMemAllocAsync_ptsz (CUdeviceptr *a0, size_t a1, CUstream stream)
#define TD_ARGS_cuMemAllocAsync_ptsz (a0, a1, stream)
#define TD_WORK_cuMemAllocAsync_ptsz (NULL, 0, 0, 0)
#define TD_SPANS_cuMemAllocAsync_ptsz false
#define TD_PARAMS_cuMemAllocFromPoolAsync (CUdeviceptr *a0, size_t a1, void *a2, CUstream stream)
#define TD_ARGS_cuMemAllocFromPoolAsync (a0, a1, a2, stream)
#define TD_WORK_cuMemAllocFromPoolAsync (NULL, 0, 0, 0)
#define TD_SPANS_cuMemAllocFromPoolAsync false
#define TD_PARAMS_cuMemAllocFromPoolAsync_ptsz (CUdeviceptr *a0, size_t a1, void *a2, CUstream stream)
#define TD_ARGS_cuMemAllocFromPoolAsync_ptsz (a0, a1, a2, stream)
#define TD_WORK_cuMemAllocFromPoolAsync_ptsz (NULL, 0, 0, 0)
#define TD_SPANS_cuMemAllocFromPoolAsync_ptsz false
#define TD_PARAMS_cuMemAllocHost (void **a0, unsigned int a1)
#define TD_ARGS_cuMemAllocHost (a0, a1)
#define TD_WORK_cuMemAllocHost (NULL, 0, 0, 0)
#define TD_SPANS_cuMemAllocHost false
#define TD_PARAMS_cuMemAllocHost_v2 (void **a0, size_t a1)
#define TD_ARGS_cuMemAllocHost_v2 (a0, a1)
#define TD_WORK_cuMemAllocHost_v2 (NULL, 0, 0, 0)
#define TD_SPANS_cuMemAllocHost_v2 false
#define TD_PARAMS_cuMemAllocManaged (CUdeviceptr *a0, size_t a1, unsigned int a2)
#define TD_ARGS_cuMemAllocManaged (a0, a1, a2)
#define TD_WORK_cuMemAllocManaged (NULL, 0, 0, 0)
#define TD_SPANS_cuMemAllocManaged false
#define TD_PARAMS_cuMemAllocPitch (unsigned int *a0, unsigned int *a1, unsigned int a2, unsigned int a3, unsigned int a4)
#define TD_ARGS_cuMemAllocPitch (a0, a1, a2, a3, a4)
#define TD_WORK_cuMemAllocPitch (NULL, 0, 0, 0)
#define TD_SPANS_cuMemAllocPitch false
#define TD_PARAMS_cuMemAllocPitch_v2 (CUdeviceptr *a0, size_t *a1, size_t a2, size_t a3, unsigned int a4)
#define TD_ARGS_cuMemAllocPitch_v2 (a0, a1, a2, a3, a4)
#define TD_WORK_cuMemAllocPitch_v2 (NULL, 0, 0, 0)
#define TD_SPANS_cuMemAllocPitch_v2 false
#define TD_PARAMS_cuMemBatchDecompressAsync (void *a0, size_t a1, unsigned int a2, size_t *a3, CUstream stream)
#define TD_ARGS_cuMemBatchDecompressAsync (a0, a1, a2, a3, stream)
#define TD_WORK_cuMemBatchDecompressAsync (NULL, 0, 0, 0)
#define TD_SPANS_cuMemBatchDecompressAsync false
#define TD_PARAMS_cuMemBatchDecompressAsync_ptsz (void *a0, size_t a1, unsigned int a2, size_t *a3, CUstream stream)
#define TD_ARGS_cuMemBatchDecompressAsync_ptsz (a0, a1, a2, a3, stream)
#define TD_WORK_cuMemBatchDecompressAsync_ptsz (NULL, 0, 0, 0)
#define TD_SPANS_cuMemBatchDecompressAsync_ptsz false
#define TD_PARAMS_cuMemCreate (CUmemGenericAllocationHandle *a0, size_t a1, const CUmemAllocationProp *a2, unsigned long long a3)
#define TD_ARGS_cuMemCreate (a0, a1, a2, a3)
#define TD_WORK_cuMemCreate (NULL, 0, 0, 0)
#define TD_SPANS_cuMemCreate false
#define TD_PARAMS_cuMemDiscardAndPrefetchBatchAsync (CUdeviceptr *a0, size_t *a1, size_t a2, CUmemLocation *a3, size_t *a4, size_t a5, unsigned long long a6, CUstream stream)
#define TD_ARGS_cuMemDiscardAndPrefetchBatchAsync (a0, a1, a2, a3, a4, a5, a6, stream)
#define TD_WORK_cuMemDiscardAndPrefetchBatchAsync (NULL, 0, 0, 0)
#define TD_SPANS_cuMemDiscardAndPrefetchBatchAsync false
#define TD_PARAMS_cuMemDiscardAndPrefetchBatchAsync_ptsz (CUdeviceptr *a0, size_t *a1, size_t a2, CUmemLocation *a3, size_t *a4, size_t a5, unsigned long long a6, CUstream stream)
#define TD_ARGS_cuMemDiscardAndPrefetchBatchAsync_ptsz (a0, a1, a2, a3, a4, a5, a6, stream)
#define TD_WORK_cuMemDiscardAndPrefetchBatchAsync_ptsz (NULL, 0, 0, 0)
#define TD_SPANS_cuMemDiscardAndPrefetchBatchAsync_ptsz false
#define TD_PARAMS_cuMemDiscardBatchAsync (CUdeviceptr *a0, size_t *a1, size_t a2, unsigned long long a3, CUstream stream)
#define TD_ARGS_cuMemDiscardBatchAsync (a0, a1, a2, a3, stream)
#define TD_WORK_cuMemDiscardBatchAsync (NULL, 0, 0, 0)
#define TD_SPANS_cuMemDiscardBatchAsync false
#define TD_PARAMS_cuMemDiscardBatchAsync_ptsz (CUdeviceptr *a0, size_t *a1, size_t a2, unsigned long long a3, CUstream stream)
#define TD_ARGS_cuMemDiscardBatchAsync_ptsz (a0, a1, a2, a3, stream)
#define TD_WORK_cuMemDiscardBatchAsync_ptsz (NULL, 0, 0, 0)
#define TD_SPANS_cuMemDiscardBatchAsync_ptsz false
#define TD_PARAMS_cuMemExportToShareableHandle (void *a0, CUmemGenericAllocationHandle a1, int a2, unsigned long long a3)
#define TD_ARGS_cuMemExportToShareableHandle (a0, a1, a2, a3)
#define TD_WORK_cuMemExportToShareableHandle (NULL, 0, 0, 0)
#define TD_SPANS_cuMemExportToShareableHandle false
#define TD_PARAMS_cuMemFree (unsigned int a0)
#define TD_ARGS_cuMemFree (a0)
#define TD_WORK_cuMemFree (NULL, 0, 0, 0)
#define TD_SPANS_cuMemFree false
#define TD_PARAMS_cuMemFree_v2 (CUdeviceptr a0)
#define TD_ARGS_cuMemFree_v2 (a0)
#define TD_WORK_cuMemFree_v2 (NULL, 0, 0, 0)
#define TD_SPANS_cuMemFree_v2 false
#define TD_PARAMS_cuMemFreeAsync (CUdeviceptr a0, CUstream stream)
#define TD_ARGS_cuMemFreeAsync (a0, stream)
#define TD_WORK_cuMemFreeAsync (NULL, 0, 0, 0)
#define TD_SPANS_cuMemFreeAsync false
#define TD_PARAMS_cuMemFreeAsync_ptsz (CUdeviceptr a0, CUstream stream)
#define TD_ARGS_cuMemFreeAsync_ptsz (a0, stream)
#define TD_WORK_cuMemFreeAsync_ptsz (NULL, 0, 0, 0)
#define TD_SPANS_cuMemFreeAsync_ptsz false
#define TD_PARAMS_cuMemFreeHost (void *a0)
#define TD_ARGS_cuMemFreeHost (a0)
#define TD_WORK_cuMemFreeHost (NULL, 0, 0, 0)
#define TD_SPANS_cuMemFreeHost false
#define TD_PARAMS_cuMemGetAccess (unsigned long long *a0, const CUmemLocation *a1, CUdeviceptr a2)
#define TD_ARGS_cuMemGetAccess (a0, a1, a2)
#define TD_WORK_cuMemGetAccess (NULL, 0, 0, 0)
#define TD_SPANS_cuMemGetAccess false
#define TD_PARAMS_cuMemGetAddressRange (unsigned int *a0, unsigned int *a1, unsigned int a2)
#define TD_ARGS_cuMemGetAddressRange (a0, a1, a2)
#define TD_WORK_cuMemGetAddressRange (NULL, 0, 0, 0)
#define TD_SPANS_cuMemGetAddressRange false
#define TD_PARAMS_cuMemGetAddressRange_v2 (CUdeviceptr *a0, size_t *a1, CUdeviceptr a2)
#define TD_ARGS_cuMemGetAddressRange_v2 (a0, a1, a2)
#define TD_WORK_cuMemGetAddressRange_v2 (NULL, 0, 0, 0)
#define TD_SPANS_cuMemGetAddressRange_v2 false
#define TD_PARAMS_cuMemGetAllocationGranularity (size_t *a0, const CUmemAllocationProp *a1, int a2)
#define TD_ARGS_cuMemGetAllocationGranularity (a0, a1, a2)
#define TD_WORK_cuMemGetAllocationGranularity (NULL, 0, 0, 0)
#define TD_SPANS_cuMemGetAllocationGranularity false
#define TD_PARAMS_cuMemGetAllocationPropertiesFromHandle (CUmemAllocationProp *a0, CUmemGenericAllocationHandle a1)
#define TD_ARGS_cuMemGetAllocationPropertiesFromHandle (a0, a1)
#define TD_WORK_cuMemGetAllocationPropertiesFromHandle (NULL, 0, 0, 0)
#define TD_SPANS_cuMemGetAllocationPropertiesFromHandle false
#define TD_PARAMS_cuMemGetDefaultMemPool (void **a0, CUmemLocation *a1, int a2)
#define TD_ARGS_cuMemGetDefaultMemPool (a0, a1, a2)
#define TD_WORK_cuMemGetDefaultMemPool (NULL, 0, 0, 0)
#define TD_SPANS_cuMemGetDefaultMemPool false
#define TD_PARAMS_cuMemGetHandleForAddressRange (void *a0, CUdeviceptr a1, size_t a2, int a3, unsigned long long a4)
#define TD_ARGS_cuMemGetHandleForAddressRange (a0, a1, a2, a3, a4)
#define TD_WORK_cuMemGetHandleForAddressRange (NULL, 0, 0, 0)
#define TD_SPANS_cuMemGetHandleForAddressRange false
#define TD_PARAMS_cuMemGetInfo (unsigned int *a0, unsigned int *a1)
#define TD_ARGS_cuMemGetInfo (a0, a1)
#define TD_WORK_cuMemGetInfo (NULL, 0, 0, 0)
#define TD_SPANS_cuMemGetInfo false
#define TD_PARAMS_cuMemGetInfo_v2 (size_t *a0, size_t *a1)
#define TD_ARGS_cuMemGetInfo_v2 (a0, a1)
#define TD_WORK_cuMemGetInfo_v2 (NULL, 0, 0, 0)
#define TD_SPANS_cuMemGetInfo_v2 false
#define TD_PARAMS_cuMemGetMemPool (void **a0, CUmemLocation *a1, int a2)
#define TD_ARGS_cuMemGetMemPool (a0, a1, a2)
#define TD_WORK_cuMemGetMemPool (NULL, 0, 0, 0)
#define TD_SPANS_cuMemGetMemPool false
#define TD_PARAMS_cuMemHostAlloc (void **a0, size_t a1, unsigned int a2)
#define TD_ARGS_cuMemHostAlloc (a0, a1, a2)
#define TD_WORK_cuMemHostAlloc (NULL, 0, 0, 0)
#define TD_SPANS_cuMemHostAlloc false
#define TD_PARAMS_cuMemHostGetDevicePointer (unsigned int *a0, void *a1, unsigned int a2)
#define TD_ARGS_cuMemHostGetDevicePointer (a0, a1, a2)
#define TD_WORK_cuMemHostGetDevicePointer (NULL, 0, 0, 0)
#define TD_SPANS_cuMemHostGetDevicePointer false
#define TD_PARAMS_cuMemHostGetDevicePointer_v2 (CUdeviceptr *a0, void *a1, unsigned int a2)
#define TD_ARGS_cuMemHostGetDevicePointer_v2 (a0, a1, a2)
#define TD_WORK_cuMemHostGetDevicePointer_v2 (NULL, 0, 0, 0)
#define TD_SPANS_cuMemHostGetDevicePointer_v2 false
#define TD_PARAMS_cuMemHostGetFlags (unsigned int *a0, void *a1)
#define TD_ARGS_cuMemHostGetFlags (a0, a1)
#define TD_WORK_cuMemHostGetFlags (NULL, 0, 0, 0)
#define TD_SPANS_cuMemHostGetFlags false
#define TD_PARAMS_cuMemHostRegister (void *a0, size_t a1, unsigned int a2)
#define TD_ARGS_cuMemHostRegister (a0, a1, a2)
#define TD_WORK_cuMemHostRegister (NULL, 0, 0, 0)
#define TD_SPANS_cuMemHostRegister false
#define TD_PARAMS_cuMemHostRegister_v2 (void *a0, size_t a1, unsigned int a2)
#define TD_ARGS_cuMemHostRegister_v2 (a0, a1, a2)
#define TD_WORK_cuMemHostRegister_v2 (NULL, 0, 0, 0)
#define TD_SPANS_cuMemHostRegister_v2 false
#define TD_PARAMS_cuMemHostUnregister (void *a0)
#define TD_ARGS_cuMemHostUnregister (a0)
#define TD_WORK_cuMemHostUnregister (NULL, 0, 0, 0)
#define TD_SPANS_cuMemHostUnregister false
#define TD_PARAMS_cuMemImportFromShareableHandle (CUmemGenericAllocationHandle *a0, void *a1, int a2)
#define TD_ARGS_cuMemImportFromShareableHandle (a0, a1, a2)
#define TD_WORK_cuMemImportFromShareableHandle (NULL, 0, 0, 0)
#define TD_SPANS_cuMemImportFromShareableHandle false
#define TD_PARAMS_cuMemMap (CUdeviceptr a0, size_t a1, size_t a2, CUmemGenericAllocationHandle a3, unsigned long long a4)
#define TD_ARGS_cuMemMap (a0, a1, a2, a3, a4)
#define TD_WORK_cuMemMap (NULL, 0, 0, 0)
#define TD_SPANS_cuMemMap false
#define TD_PARAMS_cuMemMapArrayAsync (void *a0, unsigned int a1, CUstream stream)
#define TD_ARGS_cuMemMapArrayAsync (a0, a1, stream)
#define TD_WORK_cuMemMapArrayAsync (NULL, 0, 0, 0)
#define TD_SPANS_cuMemMapArrayAsync false
#define TD_PARAMS_cuMemMapArrayAsync_ptsz (void *a0, unsigned int a1, CUstream stream)
#define TD_ARGS_cuMemMapArrayAsync_ptsz (a0, a1, stream)
#define TD_WORK_cuMemMapArrayAsync_ptsz (NULL, 0, 0, 0)
#define TD_SPANS_cuMemMapArrayAsync_ptsz false
#define TD_PARAMS_cuMemPoolCreate (void **a0, const void *a1)
#define TD_ARGS_cuMemPoolCreate (a0, a1)
#define TD_WORK_cuMemPoolCreate (NULL, 0, 0, 0)
#define TD_SPANS_cuMemPoolCreate false
#define TD_PARAMS_cuMemPoolDestroy (void *a0)
#define TD_ARGS_cuMemPoolDestroy (a0)
#define TD_WORK_cuMemPoolDestroy (NULL, 0, 0, 0)
#define TD_SPANS_cuMemPoolDestroy false
#define TD_PARAMS_cuMemPoolExportPointer (void *a0, CUdeviceptr a1)
#define TD_ARGS_cuMemPoolExportPointer (a0, a1)
#define TD_WORK_cuMemPoolExportPointer (NULL, 0, 0, 0)
#define TD_SPANS_cuMemPoolExportPointer false
#define TD_PARAMS_cuMemPoolExportToShareableHandle (void *a0, void *a1, int a2, unsigned long long a3)
#define TD_ARGS_cuMemPoolExportToShareableHandle (a0, a1, a2, a3)
#define TD_WORK_cuMemPoolExportToShareableHandle (NULL, 0, 0, 0)
#define TD_SPANS_cuMemPoolExportToShareableHandle false
#define TD_PARAMS_cuMemPoolGetAccess (int *a0, void *a1, CUmemLocation *a2)
#define TD_ARGS_cuMemPoolGetAccess (a0, a1, a2)
#define TD_WORK_cuMemPoolGetAccess (NULL, 0, 0, 0)
#define TD_SPANS_cuMemPoolGetAccess false
#define TD_PARAMS_cuMemPoolGetAttribute (void *a0, int a1, void *a2)
#define TD_ARGS_cuMemPoolGetAttribute (a0, a1, a2)
#define TD_WORK_cuMemPoolGetAttribute (NULL, 0, 0, 0)
#define TD_SPANS_cuMemPoolGetAttribute false
#define TD_PARAMS_cuMemPoolImportFromShareableHandle (void **a0, void *a1, int a2, unsigned long long a3)
#define TD_ARGS_cuMemPoolImportFromShareableHandle (a0, a1, a2, a3)
#define TD_WORK_cuMemPoolImportFromShareableHandle (NULL, 0, 0, 0)
#define TD_SPANS_cuMemPoolImportFromShareableHandle false
#define TD_PARAMS_cuMemPoolImportPointer (CUdeviceptr *a0, void *a1, void *a2)
#define TD_ARGS_cuMemPoolImportPointer (a0, a1, a2)
#define TD_WORK_cuMemPoolImportPointer (NULL, 0, 0, 0)
#define TD_SPANS_cuMemPoolImportPointer false
#define TD_PARAMS_cuMemPoolSetAccess (void *a0, const CUmemAccessDesc *a1, size_t a2)
#define TD_ARGS_cuMemPoolSetAccess (a0, a1, a2)
#define TD_WORK_cuMemPoolSetAccess (NULL, 0, 0, 0)
#define TD_SPANS_cuMemPoolSetAccess false
#define TD_PARAMS_cuMemPoolSetAttribute (void *a0, int a1, void *a2)
#define TD_ARGS_cuMemPoolSetAttribute (a0, a1, a2)
#define TD_WORK_cuMemPoolSetAttribute (NULL, 0, 0, 0)
#define TD_SPANS_cuMemPoolSetAttribute false
#define TD_PARAMS_cuMemPoolTrimTo (void *a0, size_t a1)
#define TD_ARGS_cuMemPoolTrimTo (a0, a1)
#define TD_WORK_cuMemPoolTrimTo (NULL, 0, 0, 0)
#define TD_SPANS_cuMemPoolTrimTo false
#define TD_PARAMS_cuMemPrefetchAsync (CUdeviceptr a0, size_t a1, CUdevice a2, CUstream stream)
#define TD_ARGS_cuMemPrefetchAsync (a0, a1, a2, stream)
#define TD_WORK_cuMemPrefetchAsync (NULL, 0, 0, 0)
#define TD_SPANS_cuMemPrefetchAsync false
#define TD_PARAMS_cuMemPrefetchAsync_ptsz (CUdeviceptr a0, size_t a1, CUdevice a2, CUstream stream)
#define TD_ARGS_cuMemPrefetchAsync_ptsz (a0, a1, a2, stream)
#define TD_WORK_cuMemPrefetchAsync_ptsz (NULL, 0, 0, 0)
#define TD_SPANS_cuMemPrefetchAsync_ptsz false
#define TD_PARAMS_cuMemPrefetchAsync_v2 (CUdeviceptr a0, size_t a1, CUmemLocation a2, unsigned int a3, CUstream stream)
#define TD_ARGS_cuMemPrefetchAsync_v2 (a0, a1, a2, a3, stream)
#define TD_WORK_cuMemPrefetchAsync_v2 (NULL, 0, 0, 0)
#define TD_SPANS_cuMemPrefetchAsync_v2 false
#define TD_PARAMS_cuMemPrefetchAsync_v2_ptsz (CUdeviceptr a0, size_t a1, CUmemLocation a2, unsigned int a3, CUstream stream)
#define TD_ARGS_cuMemPrefetchAsync_v2_ptsz (a0, a1, a2, a3, stream)
#define TD_WORK_cuMemPrefetchAsync_v2_ptsz (NULL, 0, 0, 0)
#define TD_SPANS_cuMemPrefetchAsync_v2_ptsz false
#define TD_PARAMS_cuMemPrefetchBatchAsync (CUdeviceptr *a0, size_t *a1, size_t a2, CUmemLocation *a3, size_t *a4, size_t a5, unsigned long long a6, CUstream stream)
#define TD_ARGS_cuMemPrefetchBatchAsync (a0, a1, a2, a3, a4, a5, a6, stream)
#define TD_WORK_cuMemPrefetchBatchAsync (NULL, 0, 0, 0)
#define TD_SPANS_cuMemPrefetchBatchAsync false
#define TD_PARAMS_cuMemPrefetchBatchAsync_ptsz (CUdeviceptr *a0, size_t *a1, size_t a2, CUmemLocation *a3, size_t *a4, size_t a5, unsigned long long a6, CUstream stream)
#define TD_ARGS_cuMemPrefetchBatchAsync_ptsz (a0, a1, a2, a3, a4, a5, a6, stream)
#define TD_WORK_cuMemPrefetchBatchAsync_ptsz (NULL, 0, 0, 0)
#define TD_SPANS_cuMemPrefetchBatchAsync_ptsz false
#define TD_PARAMS_cuMemRangeGetAttribute (void *a0, size_t a1, int a2, CUdeviceptr a3, size_t a4)
#define TD_ARGS_cuMemRangeGetAttribute (a0, a1, a2, a3, a4)
#define TD_WORK_cuMemRangeGetAttribute (NULL, 0, 0, 0)
#define TD_SPANS_cuMemRangeGetAttribute false
#define TD_PARAMS_cuMemRangeGetAttributes (void **a0, size_t *a1, int *a2, size_t a3, CUdeviceptr a4, size_t a5)
#define TD_ARGS_cuMemRangeGetAttributes (a0, a1, a2, a3, a4, a5)
#define TD_WORK_cuMemRangeGetAttributes (NULL, 0, 0, 0)
#define TD_SPANS_cuMemRangeGetAttributes false
#define TD_PARAMS_cuMemRelease (CUmemGenericAllocationHandle a0)
#define TD_ARGS_cuMemRelease (a0)
#define TD_WORK_cuMemRelease (NULL, 0, 0, 0)
#define TD_SPANS_cuMemRelease false
#define TD_PARAMS_cuMemRetainAllocationHandle (CUmemGenericAllocationHandle *a0, void *a1)
#define TD_ARGS_cuMemRetainAllocationHandle (a0, a1)
#define TD_WORK_cuMemRetainAllocationHandle (NULL, 0, 0, 0)
#define TD_SPANS_cuMemRetainAllocationHandle false
#define TD_PARAMS_cuMemSetAccess (CUdeviceptr a0, size_t a1, const CUmemAccessDesc *a2, size_t a3)
#define TD_ARGS_cuMemSetAccess (a0, a1, a2, a3)
#define TD_WORK_cuMemSetAccess (NULL, 0, 0, 0)
#define TD_SPANS_cuMemSetAccess false
#define TD_PARAMS_cuMemSetMemPool (CUmemLocation *a0, int a1, void *a2)
#define TD_ARGS_cuMemSetMemPool (a0, a1, a2)
#define TD_WORK_cuMemSetMemPool (NULL, 0, 0, 0)
#define TD_SPANS_cuMemSetMemPool false
#define TD_PARAMS_cuMemUnmap (CUdeviceptr a0, size_t a1)
#define TD_ARGS_cuMemUnmap (a0, a1)
#define TD_WORK_cuMemUnmap (NULL, 0, 0, 0)
#define TD_SPANS_cuMemUnmap false
#define TD_PARAMS_cuMemcpy (CUdeviceptr a0, CUdeviceptr a1, size_t a2)
#define TD_ARGS_cuMemcpy (a0, a1, a2)
#define TD_WORK_cuMemcpy (NULL, 0, 0, 0)
#define TD_SPANS_cuMemcpy (TD_FLAT(a0, a2) || TD_FLAT(a1, a2))
#define TD_PARAMS_cuMemcpy_ptds (CUdeviceptr a0, CUdeviceptr a1, size_t a2)
#define TD_ARGS_cuMemcpy_ptds (a0, a1, a2)
#define TD_WORK_cuMemcpy_ptds (NULL, 0, 0, 0)
#define TD_SPANS_cuMemcpy_ptds (TD_FLAT(a0, a2) || TD_FLAT(a1, a2))
#define TD_PARAMS_cuMemcpy2D (const void *a0)
#define TD_ARGS_cuMemcpy2D (a0)
#define TD_WORK_cuMemcpy2D (NULL, 0, 0, 0)
#define TD_SPANS_cuMemcpy2D false
#define TD_PARAMS_cuMemcpy2D_v2 (const void *a0)
#define TD_ARGS_cuMemcpy2D_v2 (a0)
#define TD_WORK_cuMemcpy2D_v2 (NULL, 0, 0, 0)
#define TD_SPANS_cuMemcpy2D_v2 (TD_COPY_2D(a0))
#define TD_PARAMS_cuMemcpy2D_v2_ptds (const void *a0)
#define TD_ARGS_cuMemcpy2D_v2_ptds (a0)
#define TD_WORK_cuMemcpy2D_v2_ptds (NULL, 0, 0, 0)
#define TD_SPANS_cuMemcpy2D_v2_ptds (TD_COPY_2D(a0))
#define TD_PARAMS_cuMemcpy2DAsync (const void *a0, CUstream stream)
#define TD_ARGS_cuMemcpy2DAsync (a0, stream)
#define TD_WORK_cuMemcpy2DAsync (NULL, 0, 0, 0)
#define TD_SPANS_cuMemcpy2DAsync false
#define TD_PARAMS_cuMemcpy2DAsync_v2 (const void *a0, CUstream stream)
#define TD_ARGS_cuMemcpy2DAsync_v2 (a0, stream)
#define TD_WORK_cuMemcpy2DAsync_v2 (NULL, 0, 0, 0)
#define TD_SPANS_cuMemcpy2DAsync_v2 (TD_COPY_2D(a0))
#define TD_PARAMS_cuMemcpy2DAsync_v2_ptsz (const void *a0, CUstream stream)
#define TD_ARGS_cuMemcpy2DAsync_v2_ptsz (a0, stream)
#define TD_WORK_cuMemcpy2DAsync_v2_ptsz (NULL, 0, 0, 0)
#define TD_SPANS_cuMemcpy2DAsync_v2_ptsz (TD_COPY_2D(a0))
#define TD_PARAMS_cuMemcpy2DUnaligned (const void *a0)
#define TD_ARGS_cuMemcpy2DUnaligned (a0)
#define TD_WORK_cuMemcpy2DUnaligned (NULL, 0, 0, 0)
#define TD_SPANS_cuMemcpy2DUnaligned false
#define TD_PARAMS_cuMemcpy2DUnaligned_v2 (const void *a0)
#define TD_ARGS_cuMemcpy2DUnaligned_v2 (a0)
#define TD_WORK_cuMemcpy2DUnaligned_v2 (NULL, 0, 0, 0)
#define TD_SPANS_cuMemcpy2DUnaligned_v2 (TD_COPY_2D(a0))
#define TD_PARAMS_cuMemcpy2DUnaligned_v2_ptds (const void *a0)
#define TD_ARGS_cuMemcpy2DUnaligned_v2_ptds (a0)
#define TD_WORK_cuMemcpy2DUnaligned_v2_ptds (NULL, 0, 0, 0)
#define TD_SPANS_cuMemcpy2DUnaligned_v2_ptds (TD_COPY_2D(a0))
#define TD_PARAMS_cuMemcpy3D (const void *a0)
#define TD_ARGS_cuMemcpy3D (a0)
#define TD_WORK_cuMemcpy3D (NULL, 0, 0, 0)
#define TD_SPANS_cuMemcpy3D false
#define TD_PARAMS_cuMemcpy3D_v2 (const void *a0)
#define TD_ARGS_cuMemcpy3D_v2 (a0)
#define TD_WORK_cuMemcpy3D_v2 (NULL, 0, 0, 0)
#define TD_SPANS_cuMemcpy3D_v2 (TD_COPY_3D(a0))
#define TD_PARAMS_cuMemcpy3D_v2_ptds (const void *a0)
#define TD_ARGS_cuMemcpy3D_v2_ptds (a0)
#define TD_WORK_cuMemcpy3D_v2_ptds (NULL, 0, 0, 0)
#define TD_SPANS_cuMemcpy3D_v2_ptds (TD_COPY_3D(a0))
#define TD_PARAMS_cuMemcpy3DAsync (const void *a0, CUstream stream)
#define TD_ARGS_cuMemcpy3DAsync (a0, stream)
#define TD_WORK_cuMemcpy3DAsync (NULL, 0, 0, 0)
#define TD_SPANS_cuMemcpy3DAsync false
#define TD_PARAMS_cuMemcpy3DAsync_v2 (const void *a0, CUstream stream)
#define TD_ARGS_cuMemcpy3DAsync_v2 (a0, stream)
#define TD_WORK_cuMemcpy3DAsync_v2 (NULL, 0, 0, 0)
#define TD_SPANS_cuMemcpy3DAsync_v2 (TD_COPY_3D(a0))
#define TD_PARAMS_cuMemcpy3DAsync_v2_ptsz (const void *a0, CUstream stream)
#define TD_ARGS_cuMemcpy3DAsync_v2_ptsz (a0, stream)
#define TD_WORK_cuMemcpy3DAsync_v2_ptsz (NULL, 0, 0, 0)
#define TD_SPANS_cuMemcpy3DAsync_v2_ptsz (TD_COPY_3D(a0))
#define TD_PARAMS_cuMemcpy3DBatchAsync (size_t a0, void *a1, size_t *a2, unsigned long long a3, CUstream stream)
#define TD_ARGS_cuMemcpy3DBatchAsync (a0, a1, a2, a3, stream)
#define TD_WORK_cuMemcpy3DBatchAsync (NULL, 0, 0, 0)
#define TD_SPANS_cuMemcpy3DBatchAsync (TD_BATCH_3D(a0, a1, a2))
#define TD_PARAMS_cuMemcpy3DBatchAsync_ptsz (size_t a0, void *a1, size_t *a2, unsigned long long a3, CUstream stream)
#define TD_ARGS_cuMemcpy3DBatchAsync_ptsz (a0, a1, a2, a3, stream)
#define TD_WORK_cuMemcpy3DBatchAsync_ptsz (NULL, 0, 0, 0)
#define TD_SPANS_cuMemcpy3DBatchAsync_ptsz (TD_BATCH_3D(a0, a1, a2))
#define TD_PARAMS_cuMemcpy3DBatchAsync_v2 (size_t a0, void *a1, unsigned long long a2, CUstream stream)
#define TD_ARGS_cuMemcpy3DBatchAsync_v2 (a0, a1, a2, stream)
#define TD_WORK_cuMemcpy3DBatchAsync_v2 (NULL, 0, 0, 0)
#define TD_SPANS_cuMemcpy3DBatchAsync_v2 (TD_BATCH_3D(a0, a1, NULL))
#define TD_PARAMS_cuMemcpy3DBatchAsync_v2_ptsz (size_t a0, void *a1, unsigned long long a2, CUstream stream)
#define TD_ARGS_cuMemcpy3DBatchAsync_v2_ptsz (a0, a1, a2, stream)
#define TD_WORK_cuMemcpy3DBatchAsync_v2_ptsz (NULL, 0, 0, 0)
#define TD_SPANS_cuMemcpy3DBatchAsync_v2_ptsz (TD_BATCH_3D(a0, a1, NULL))
#define TD_PARAMS_cuMemcpy3DPeer (const void *a0)
#define TD_ARGS_cuMemcpy3DPeer (a0)
#define TD_WORK_cuMemcpy3DPeer (NULL, 0, 0, 0)
#define TD_SPANS_cuMemcpy3DPeer (TD_COPY_3D(a0))
#define TD_PARAMS_cuMemcpy3DPeer_ptds (const void *a0)
#define TD_ARGS_cuMemcpy3DPeer_ptds (a0)
#define TD_WORK_cuMemcpy3DPeer_ptds (NULL, 0, 0, 0)
#define TD_SPANS_cuMemcpy3DPeer_ptds (TD_COPY_3D(a0))
#define TD_PARAMS_cuMemcpy3DPeerAsync (const void *a0, CUstream stream)
#define TD_ARGS_cuMemcpy3DPeerAsync (a0, stream)
#define TD_WORK_cuMemcpy3DPeerAsync (NULL, 0, 0, 0)
#define TD_SPANS_cuMemcpy3DPeerAsync (TD_COPY_3D(a0))
#define TD_PARAMS_cuMemcpy3DPeerAsync_ptsz (const void *a0, CUstream stream)
#define TD_ARGS_cuMemcpy3DPeerAsync_ptsz (a0, stream)
#define TD_WORK_cuMemcpy3DPeerAsync_ptsz (NULL, 0, 0, 0)
#define TD_SPANS_cuMemcpy3DPeerAsync_ptsz (TD_COPY_3D(a0))
#define TD_PARAMS_cuMemcpyAsync (CUdeviceptr a0, CUdeviceptr a1, size_t a2, CUstream stream)
#define TD_ARGS_cuMemcpyAsync (a0, a1, a2, stream)
#define TD_WORK_cuMemcpyAsync (NULL, 0, 0, 0)
#define TD_SPANS_cuMemcpyAsync (TD_FLAT(a0, a2) || TD_FLAT(a1, a2))
#define TD_PARAMS_cuMemcpyAsync_ptsz (CUdeviceptr a0, CUdeviceptr a1, size_t a2, CUstream stream)
#define TD_ARGS_cuMemcpyAsync_ptsz (a0, a1, a2, stream)
#define TD_WORK_cuMemcpyAsync_ptsz (NULL, 0, 0, 0)
#define TD_SPANS_cuMemcpyAsync_ptsz (TD_FLAT(a0, a2) || TD_FLAT(a1, a2))
#define TD_PARAMS_cuMemcpyAtoA (void *a0, unsigned int a1, void *a2, unsigned int a3, unsigned int a4)
#define TD_ARGS_cuMemcpyAtoA (a0, a1, a2, a3, a4)
#define TD_WORK_cuMemcpyAtoA (NULL, 0, 0, 0)
#define TD_SPANS_cuMemcpyAtoA false
#define TD_PARAMS_cuMemcpyAtoA_v2 (void *a0, size_t a1, void *a2, size_t a3, size_t a4)
#define TD_ARGS_cuMemcpyAtoA_v2 (a0, a1, a2, a3, a4)
#define TD_WORK_cuMemcpyAtoA_v2 (NULL, 0, 0, 0)
#define TD_SPANS_cuMemcpyAtoA_v2 false
#define TD_PARAMS_cuMemcpyAtoA_v2_ptds (void *a0, size_t a1, void *a2, size_t a3, size_t a4)
#define TD_ARGS_cuMemcpyAtoA_v2_ptds (a0, a1, a2, a3, a4)
#define TD_WORK_cuMemcpyAtoA_v2_ptds (NULL, 0, 0, 0)
#define TD_SPANS_cuMemcpyAtoA_v2_ptds false
#define TD_PARAMS_cuMemcpyAtoD (unsigned int a0, void *a1, unsigned int a2, unsigned int a3)
#define TD_ARGS_cuMemcpyAtoD (a0, a1, a2, a3)
#define TD_WORK_cuMemcpyAtoD (NULL, 0, 0, 0)
#define TD_SPANS_cuMemcpyAtoD false
#define TD_PARAMS_cuMemcpyAtoD_v2 (CUdeviceptr a0, void *a1, size_t a2, size_t a3)
#define TD_ARGS_cuMemcpyAtoD_v2 (a0, a1, a2, a3)
#define TD_WORK_cuMemcpyAtoD_v2 (NULL, 0, 0, 0)
#define TD_SPANS_cuMemcpyAtoD_v2 (TD_FLAT(a0, a3))
#define TD_PARAMS_cuMemcpyAtoD_v2_ptds (CUdeviceptr a0, void *a1, size_t a2, size_t a3)
#define TD_ARGS_cuMemcpyAtoD_v2_ptds (a0, a1, a2, a3)
#define TD_WORK_cuMemcpyAtoD_v2_ptds (NULL, 0, 0, 0)
#define TD_SPANS_cuMemcpyAtoD_v2_ptds (TD_FLAT(a0, a3))
#define TD_PARAMS_cuMemcpyAtoH (void *a0, void *a1, unsigned int a2, unsigned int a3)
#define TD_ARGS_cuMemcpyAtoH (a0, a1, a2, a3)
#define TD_WORK_cuMemcpyAtoH (NULL, 0, 0, 0)
#define TD_SPANS_cuMemcpyAtoH false
#define TD_PARAMS_cuMemcpyAtoH_v2 (void *a0, void *a1, size_t a2, size_t a3)
#define TD_ARGS_cuMemcpyAtoH_v2 (a0, a1, a2, a3)
#define TD_WORK_cuMemcpyAtoH_v2 (NULL, 0, 0, 0)
#define TD_SPANS_cuMemcpyAtoH_v2 false
#define TD_PARAMS_cuMemcpyAtoH_v2_ptds (void *a0, void *a1, size_t a2, size_t a3)
#define TD_ARGS_cuMemcpyAtoH_v2_ptds (a0, a1, a2, a3)
#define TD_WORK_cuMemcpyAtoH_v2_ptds (NULL, 0, 0, 0)
#define TD_SPANS_cuMemcpyAtoH_v2_ptds false
#define TD_PARAMS_cuMemcpyAtoHAsync (void *a0, void *a1, unsigned int a2, unsigned int a3, CUstream stream)
#define TD_ARGS_cuMemcpyAtoHAsync (a0, a1, a2, a3, stream)
#define TD_WORK_cuMemcpyAtoHAsync (NULL, 0, 0, 0)
#define TD_SPANS_cuMemcpyAtoHAsync false
#define TD_PARAMS_cuMemcpyAtoHAsync_v2 (void *a0, void *a1, size_t a2, size_t a3, CUstream stream)
#define TD_ARGS_cuMemcpyAtoHAsync_v2 (a0, a1, a2, a3, stream)
#define TD_WORK_cuMemcpyAtoHAsync_v2 (NULL, 0, 0, 0)
#define TD_SPANS_cuMemcpyAtoHAsync_v2 false
#define TD_PARAMS_cuMemcpyAtoHAsync_v2_ptsz (void *a0, void *a1, size_t a2, size_t a3, CUstream stream)
#define TD_ARGS_cuMemcpyAtoHAsync_v2_ptsz (a0, a1, a2, a3, stream)
#define TD_WORK_cuMemcpyAtoHAsync_v2_ptsz (NULL, 0, 0, 0)
#define TD_SPANS_cuMemcpyAtoHAsync_v2_ptsz false
#define TD_PARAMS_cuMemcpyBatchAsync (CUdeviceptr *a0, CUdeviceptr *a1, size_t *a2, size_t a3, void *a4, size_t *a5, size_t a6, size_t *a7, CUstream stream)
#define TD_ARGS_cuMemcpyBatchAsync (a0, a1, a2, a3, a4, a5, a6, a7, stream)
#define TD_WORK_cuMemcpyBatchAsync (NULL, 0, 0, 0)
#define TD_SPANS_cuMemcpyBatchAsync (TD_BATCH(a0, a1, a2, a3, a7))
#define TD_PARAMS_cuMemcpyBatchAsync_ptsz (CUdeviceptr *a0, CUdeviceptr *a1, size_t *a2, size_t a3, void *a4, size_t *a5, size_t a6, size_t *a7, CUstream stream)
#define TD_ARGS_cuMemcpyBatchAsync_ptsz (a0, a1, a2, a3, a4, a5, a6, a7, stream)
#define TD_WORK_cuMemcpyBatchAsync_ptsz (NULL, 0, 0, 0)
#define TD_SPANS_cuMemcpyBatchAsync_ptsz (TD_BATCH(a0, a1, a2, a3, a7))
#define TD_PARAMS_cuMemcpyBatchAsync_v2 (CUdeviceptr *a0, CUdeviceptr *a1, size_t *a2, size_t a3, void *a4, size_t *a5, size_t a6, CUstream stream)
#define TD_ARGS_cuMemcpyBatchAsync_v2 (a0, a1, a2, a3, a4, a5, a6, stream)
#define TD_WORK_cuMemcpyBatchAsync_v2 (NULL, 0, 0, 0)
#define TD_SPANS_cuMemcpyBatchAsync_v2 (TD_BATCH(a0, a1, a2, a3, NULL))
#define TD_PARAMS_cuMemcpyBatchAsync_v2_ptsz (CUdeviceptr *a0, CUdeviceptr *a1, size_t *a2, size_t a3, void *a4, size_t *a5, size_t a6, CUstream stream)
#define TD_ARGS_cuMemcpyBatchAsync_v2_ptsz (a0, a1, a2, a3, a4, a5, a6, stream)
#define TD_WORK_cuMemcpyBatchAsync_v2_ptsz (NULL, 0, 0, 0)
#define TD_SPANS_cuMemcpyBatchAsync_v2_ptsz (TD_BATCH(a0, a1, a2, a3, NULL))
#define TD_PARAMS_cuMemcpyDtoA (void *a0, unsigned int a1, unsigned int a2, unsigned int a3)
#define TD_ARGS_cuMemcpyDtoA (a0, a1, a2, a3)
#define TD_WORK_cuMemcpyDtoA (NULL, 0, 0, 0)
#define TD_SPANS_cuMemcpyDtoA false
#define TD_PARAMS_cuMemcpyDtoA_v2 (void *a0, size_t a1, CUdeviceptr a2, size_t a3)
#define TD_ARGS_cuMemcpyDtoA_v2 (a0, a1, a2, a3)
#define TD_WORK_cuMemcpyDtoA_v2 (NULL, 0, 0, 0)
#define TD_SPANS_cuMemcpyDtoA_v2 (TD_FLAT(a2, a3))
#define TD_PARAMS_cuMemcpyDtoA_v2_ptds (void *a0, size_t a1, CUdeviceptr a2, size_t a3)
#define TD_ARGS_cuMemcpyDtoA_v2_ptds (a0, a1, a2, a3)
#define TD_WORK_cuMemcpyDtoA_v2_ptds (NULL, 0, 0, 0)
#define TD_SPANS_cuMemcpyDtoA_v2_ptds (TD_FLAT(a2, a3))
#define TD_PARAMS_cuMemcpyDtoD (unsigned int a0, unsigned int a1, unsigned int a2)
#define TD_ARGS_cuMemcpyDtoD (a0, a1, a2)
#define TD_WORK_cuMemcpyDtoD (NULL, 0, 0, 0)
#define TD_SPANS_cuMemcpyDtoD false
#define TD_PARAMS_cuMemcpyDtoD_v2 (CUdeviceptr a0, CUdeviceptr a1, size_t a2)
#define TD_ARGS_cuMemcpyDtoD_v2 (a0, a1, a2)
#define TD_WORK_cuMemcpyDtoD_v2 (NULL, 0, 0, 0)
#define TD_SPANS_cuMemcpyDtoD_v2 (TD_FLAT(a0, a2) || TD_FLAT(a1, a2))
#define TD_PARAMS_cuMemcpyDtoD_v2_ptds (CUdeviceptr a0, CUdeviceptr a1, size_t a2)
#define TD_ARGS_cuMemcpyDtoD_v2_ptds (a0, a1, a2)
#define TD_WORK_cuMemcpyDtoD_v2_ptds (NULL, 0, 0, 0)
#define TD_SPANS_cuMemcpyDtoD_v2_ptds (TD_FLAT(a0, a2) || TD_FLAT(a1, a2))
#define TD_PARAMS_cuMemcpyDtoDAsync (unsigned int a0, unsigned int a1, unsigned int a2, CUstream stream)
#define TD_ARGS_cuMemcpyDtoDAsync (a0, a1, a2, stream)
#define TD_WORK_cuMemcpyDtoDAsync (NULL, 0, 0, 0)
#define TD_SPANS_cuMemcpyDtoDAsync false
#define TD_PARAMS_cuMemcpyDtoDAsync_v2 (CUdeviceptr a0, CUdeviceptr a1, size_t a2, CUstream stream)
#define TD_ARGS_cuMemcpyDtoDAsync_v2 (a0, a1, a2, stream)
#define TD_WORK_cuMemcpyDtoDAsync_v2 (NULL, 0, 0, 0)
#define TD_SPANS_cuMemcpyDtoDAsync_v2 (TD_FLAT(a0, a2) || TD_FLAT(a1, a2))
#define TD_PARAMS_cuMemcpyDtoDAsync_v2_ptsz (CUdeviceptr a0, CUdeviceptr a1, size_t a2, CUstream stream)
#define TD_ARGS_cuMemcpyDtoDAsync_v2_ptsz (a0, a1, a2, stream)
#define TD_WORK_cuMemcpyDtoDAsync_v2_ptsz (NULL, 0, 0, 0)
#define TD_SPANS_cuMemcpyDtoDAsync_v2_ptsz (TD_FLAT(a0, a2) || TD_FLAT(a1, a2))
#define TD_PARAMS_cuMemcpyDtoH (void *a0, unsigned int a1, unsigned int a2)
#define TD_ARGS_cuMemcpyDtoH (a0, a1, a2)
#define TD_WORK_cuMemcpyDtoH (NULL, 0, 0, 0)
#define TD_SPANS_cuMemcpyDtoH false
#define TD_PARAMS_cuMemcpyDtoH_v2 (void *a0, CUdeviceptr a1, size_t a2)
#define TD_ARGS_cuMemcpyDtoH_v2 (a0, a1, a2)
#define TD_WORK_cuMemcpyDtoH_v2 (NULL, 0, 0, 0)
#define TD_SPANS_cuMemcpyDtoH_v2 (TD_FLAT(a1, a2))
#define TD_PARAMS_cuMemcpyDtoH_v2_ptds (void *a0, CUdeviceptr a1, size_t a2)
#define TD_ARGS_cuMemcpyDtoH_v2_ptds (a0, a1, a2)
#define TD_WORK_cuMemcpyDtoH_v2_ptds (NULL, 0, 0, 0)
#define TD_SPANS_cuMemcpyDtoH_v2_ptds (TD_FLAT(a1, a2))
#define TD_PARAMS_cuMemcpyDtoHAsync (void *a0, unsigned int a1, unsigned int a2, CUstream stream)
#define TD_ARGS_cuMemcpyDtoHAsync (a0, a1, a2, stream)
#define TD_WORK_cuMemcpyDtoHAsync (NULL, 0, 0, 0)
#define TD_SPANS_cuMemcpyDtoHAsync false
#define TD_PARAMS_cuMemcpyDtoHAsync_v2 (void *a0, CUdeviceptr a1, size_t a2, CUstream stream)
#define TD_ARGS_cuMemcpyDtoHAsync_v2 (a0, a1, a2, stream)
#define TD_WORK_cuMemcpyDtoHAsync_v2 (NULL, 0, 0, 0)
#define TD_SPANS_cuMemcpyDtoHAsync_v2 (TD_FLAT(a1, a2))
#define TD_PARAMS_cuMemcpyDtoHAsync_v2_ptsz (void *a0, CUdeviceptr a1, size_t a2, CUstream stream)
#define TD_ARGS_cuMemcpyDtoHAsync_v2_ptsz (a0, a1, a2, stream)
#define TD_WORK_cuMemcpyDtoHAsync_v2_ptsz (NULL, 0, 0, 0)
#define TD_SPANS_cuMemcpyDtoHAsync_v2_ptsz (TD_FLAT(a1, a2))
#define TD_PARAMS_cuMemcpyHtoA (void *a0, unsigned int a1, const void *a2, unsigned int a3)
#define TD_ARGS_cuMemcpyHtoA (a0, a1, a2, a3)
#define TD_WORK_cuMemcpyHtoA (NULL, 0, 0, 0)
#define TD_SPANS_cuMemcpyHtoA false
#define TD_PARAMS_cuMemcpyHtoA_v2 (void *a0, size_t a1, const void *a2, size_t a3)
#define TD_ARGS_cuMemcpyHtoA_v2 (a0, a1, a2, a3)
#define TD_WORK_cuMemcpyHtoA_v2 (NULL, 0, 0, 0)
#define TD_SPANS_cuMemcpyHtoA_v2 false
#define TD_PARAMS_cuMemcpyHtoA_v2_ptds (void *a0, size_t a1, const void *a2, size_t a3)
#define TD_ARGS_cuMemcpyHtoA_v2_ptds (a0, a1, a2, a3)
#define TD_WORK_cuMemcpyHtoA_v2_ptds (NULL, 0, 0, 0)
#define TD_SPANS_cuMemcpyHtoA_v2_ptds false
#define TD_PARAMS_cuMemcpyHtoAAsync (void *a0, unsigned int a1, const void *a2, unsigned int a3, CUstream stream)
#define TD_ARGS_cuMemcpyHtoAAsync (a0, a1, a2, a3, stream)
#define TD_WORK_cuMemcpyHtoAAsync (NULL, 0, 0, 0)
#define TD_SPANS_cuMemcpyHtoAAsync false
#define TD_PARAMS_cuMemcpyHtoAAsync_v2 (void *a0, size_t a1, const void *a2, size_t a3, CUstream stream)
#define TD_ARGS_cuMemcpyHtoAAsync_v2 (a0, a1, a2, a3, stream)
#define TD_WORK_cuMemcpyHtoAAsync_v2 (NULL, 0, 0, 0)
#define TD_SPANS_cuMemcpyHtoAAsync_v2 false
#define TD_PARAMS_cuMemcpyHtoAAsync_v2_ptsz (void *a0, size_t a1, const void *a2, size_t a3, CUstream stream)
#define TD_ARGS_cuMemcpyHtoAAsync_v2_ptsz (a0, a1, a2, a3, stream)
#define TD_WORK_cuMemcpyHtoAAsync_v2_ptsz (NULL, 0, 0, 0)
#define TD_SPANS_cuMemcpyHtoAAsync_v2_ptsz false
#define TD_PARAMS_cuMemcpyHtoD (unsigned int a0, const void *a1, unsigned int a2)
#define TD_ARGS_cuMemcpyHtoD (a0, a1, a2)
#define TD_WORK_cuMemcpyHtoD (NULL, 0, 0, 0)
#define TD_SPANS_cuMemcpyHtoD false
#define TD_PARAMS_cuMemcpyHtoD_v2 (CUdeviceptr a0, const void *a1, size_t a2)
#define TD_ARGS_cuMemcpyHtoD_v2 (a0, a1, a2)
#define TD_WORK_cuMemcpyHtoD_v2 (NULL, 0, 0, 0)
#define TD_SPANS_cuMemcpyHtoD_v2 (TD_FLAT(a0, a2))
#define TD_PARAMS_cuMemcpyHtoD_v2_ptds (CUdeviceptr a0, const void *a1, size_t a2)
#define TD_ARGS_cuMemcpyHtoD_v2_ptds (a0, a1, a2)
#define TD_WORK_cuMemcpyHtoD_v2_ptds (NULL, 0, 0, 0)
#define TD_SPANS_cuMemcpyHtoD_v2_ptds (TD_FLAT(a0, a2))
#define TD_PARAMS_cuMemcpyHtoDAsync (unsigned int a0, const void *a1, unsigned int a2, CUstream stream)
#define TD_ARGS_cuMemcpyHtoDAsync (a0, a1, a2, stream)
#define TD_WORK_cuMemcpyHtoDAsync (NULL, 0, 0, 0)
#define TD_SPANS_cuMemcpyHtoDAsync false
#define TD_PARAMS_cuMemcpyHtoDAsync_v2 (CUdeviceptr a0, const void *a1, size_t a2, CUstream stream)
#define TD_ARGS_cuMemcpyHtoDAsync_v2 (a0, a1, a2, stream)
#define TD_WORK_cuMemcpyHtoDAsync_v2 (NULL, 0, 0, 0)
#define TD_SPANS_cuMemcpyHtoDAsync_v2 (TD_FLAT(a0, a2))
#define TD_PARAMS_cuMemcpyHtoDAsync_v2_ptsz (CUdeviceptr a0, const void *a1, size_t a2, CUstream stream)
#define TD_ARGS_cuMemcpyHtoDAsync_v2_ptsz (a0, a1, a2, stream)
#define TD_WORK_cuMemcpyHtoDAsync_v2_ptsz (NULL, 0, 0, 0)
#define TD_SPANS_cuMemcpyHtoDAsync_v2_ptsz (TD_FLAT(a0, a2))
#define TD_PARAMS_cuMemcpyPeer (CUdeviceptr a0, CUcontext a1, CUdeviceptr a2, CUcontext a3, size_t a4)
#define TD_ARGS_cuMemcpyPeer (a0, a1, a2, a3, a4)
#define TD_WORK_cuMemcpyPeer (NULL, 0, 0, 0)
#define TD_SPANS_cuMemcpyPeer (TD_FLAT(a0, a4) || TD_FLAT(a2, a4))
#define TD_PARAMS_cuMemcpyPeer_ptds (CUdeviceptr a0, CUcontext a1, CUdeviceptr a2, CUcontext a3, size_t a4)
#define TD_ARGS_cuMemcpyPeer_ptds (a0, a1, a2, a3, a4)
#define TD_WORK_cuMemcpyPeer_ptds (NULL, 0, 0, 0)
#define TD_SPANS_cuMemcpyPeer_ptds (TD_FLAT(a0, a4) || TD_FLAT(a2, a4))
#define TD_PARAMS_cuMemcpyPeerAsync (CUdeviceptr a0, CUcontext a1, CUdeviceptr a2, CUcontext a3, size_t a4, CUstream stream)
#define TD_ARGS_cuMemcpyPeerAsync (a0, a1, a2, a3, a4, stream)
#define TD_WORK_cuMemcpyPeerAsync (NULL, 0, 0, 0)
#define TD_SPANS_cuMemcpyPeerAsync (TD_FLAT(a0, a4) || TD_FLAT(a2, a4))
#define TD_PARAMS_cuMemcpyPeerAsync_ptsz (CUdeviceptr a0, CUcontext a1, CUdeviceptr a2, CUcontext a3, size_t a4, CUstream stream)
#define TD_ARGS_cuMemcpyPeerAsync_ptsz (a0, a1, a2, a3, a4, stream)
#define TD_WORK_cuMemcpyPeerAsync_ptsz (NULL, 0, 0, 0)
#define TD_SPANS_cuMemcpyPeerAsync_ptsz (TD_FLAT(a0, a4) || TD_FLAT(a2, a4))
#define TD_PARAMS_cuMemsetD16 (unsigned int a0, unsigned short a1, unsigned int a2)
#define TD_ARGS_cuMemsetD16 (a0, a1, a2)
#define TD_WORK_cuMemsetD16 (NULL, 0, 0, 0)
#define TD_SPANS_cuMemsetD16 false
#define TD_PARAMS_cuMemsetD16_v2 (CUdeviceptr a0, unsigned short a1, size_t a2)
#define TD_ARGS_cuMemsetD16_v2 (a0, a1, a2)
#define TD_WORK_cuMemsetD16_v2 (NULL, 0, 0, 0)
#define TD_SPANS_cuMemsetD16_v2 (TD_ROWS(a0, 0, 2, a2, 1))
#define TD_PARAMS_cuMemsetD16_v2_ptds (CUdeviceptr a0, unsigned short a1, size_t a2)
#define TD_ARGS_cuMemsetD16_v2_ptds (a0, a1, a2)
#define TD_WORK_cuMemsetD16_v2_ptds (NULL, 0, 0, 0)
#define TD_SPANS_cuMemsetD16_v2_ptds (TD_ROWS(a0, 0, 2, a2, 1))
#define TD_PARAMS_cuMemsetD16Async (CUdeviceptr a0, unsigned short a1, size_t a2, CUstream stream)
#define TD_ARGS_cuMemsetD16Async (a0, a1, a2, stream)
#define TD_WORK_cuMemsetD16Async (NULL, 0, 0, 0)
#define TD_SPANS_cuMemsetD16Async (TD_ROWS(a0, 0, 2, a2, 1))
#define TD_PARAMS_cuMemsetD16Async_ptsz (CUdeviceptr a0, unsigned short a1, size_t a2, CUstream stream)
#define TD_ARGS_cuMemsetD16Async_ptsz (a0, a1, a2, stream)
#define TD_WORK_cuMemsetD16Async_ptsz (NULL, 0, 0, 0)
#define TD_SPANS_cuMemsetD16Async_ptsz (TD_ROWS(a0, 0, 2, a2, 1))
#define TD_PARAMS_cuMemsetD2D16 (unsigned int a0, unsigned int a1, unsigned short a2, unsigned int a3, unsigned int a4)
#define TD_ARGS_cuMemsetD2D16 (a0, a1, a2, a3, a4)
#define TD_WORK_cuMemsetD2D16 (NULL, 0, 0, 0)
#define TD_SPANS_cuMemsetD2D16 false
#define TD_PARAMS_cuMemsetD2D16_v2 (CUdeviceptr a0, size_t a1, unsigned short a2, size_t a3, size_t a4)
#define TD_ARGS_cuMemsetD2D16_v2 (a0, a1, a2, a3, a4)
#define TD_WORK_cuMemsetD2D16_v2 (NULL, 0, 0, 0)
#define TD_SPANS_cuMemsetD2D16_v2 (TD_ROWS(a0, a1, 2, a3, a4))
#define TD_PARAMS_cuMemsetD2D16_v2_ptds (CUdeviceptr a0, size_t a1, unsigned short a2, size_t a3, size_t a4)
#define TD_ARGS_cuMemsetD2D16_v2_ptds (a0, a1, a2, a3, a4)
#define TD_WORK_cuMemsetD2D16_v2_ptds (NULL, 0, 0, 0)
#define TD_SPANS_cuMemsetD2D16_v2_ptds (TD_ROWS(a0, a1, 2, a3, a4))
#define TD_PARAMS_cuMemsetD2D16Async (CUdeviceptr a0, size_t a1, unsigned short a2, size_t a3, size_t a4, CUstream stream)
#define TD_ARGS_cuMemsetD2D16Async (a0, a1, a2, a3, a4, stream)
#define TD_WORK_cuMemsetD2D16Async (NULL, 0, 0, 0)
#define TD_SPANS_cuMemsetD2D16Async (TD_ROWS(a0, a1, 2, a3, a4))
#define TD_PARAMS_cuMemsetD2D16Async_ptsz (CUdeviceptr a0, size_t a1, unsigned short a2, size_t a3, size_t a4, CUstream stream)
#define TD_ARGS_cuMemsetD2D16Async_ptsz (a0, a1, a2, a3, a4, stream)
#define TD_WORK_cuMemsetD2D16Async_ptsz (NULL, 0, 0, 0)
#define TD_SPANS_cuMemsetD2D16Async_ptsz (TD_ROWS(a0, a1, 2, a3, a4))
#define TD_PARAMS_cuMemsetD2D32 (unsigned int a0, unsigned int a1, unsigned int a2, unsigned int a3, unsigned int a4)
#define TD_ARGS_cuMemsetD2D32 (a0, a1, a2, a3, a4)
#define TD_WORK_cuMemsetD2D32 (NULL, 0, 0, 0)
#define TD_SPANS_cuMemsetD2D32 false
#define TD_PARAMS_cuMemsetD2D32_v2 (CUdeviceptr a0, size_t a1, unsigned int a2, size_t a3, size_t a4)
#define TD_ARGS_cuMemsetD2D32_v2 (a0, a1, a2, a3, a4)
#define TD_WORK_cuMemsetD2D32_v2 (NULL, 0, 0, 0)
#define TD_SPANS_cuMemsetD2D32_v2 (TD_ROWS(a0, a1, 4, a3, a4))
#define TD_PARAMS_cuMemsetD2D32_v2_ptds (CUdeviceptr a0, size_t a1, unsigned int a2, size_t a3, size_t a4)
#define TD_ARGS_cuMemsetD2D32_v2_ptds (a0, a1, a2, a3, a4)
#define TD_WORK_cuMemsetD2D32_v2_ptds (NULL, 0, 0, 0)
#define TD_SPANS_cuMemsetD2D32_v2_ptds (TD_ROWS(a0, a1, 4, a3, a4))
#define TD_PARAMS_cuMemsetD2D32Async (CUdeviceptr a0, size_t a1, unsigned int a2, size_t a3, size_t a4, CUstream stream)
#define TD_ARGS_cuMemsetD2D32Async (a0, a1, a2, a3, a4, stream)
#define TD_WORK_cuMemsetD2D32Async (NULL, 0, 0, 0)
#define TD_SPANS_cuMemsetD2D32Async (TD_ROWS(a0, a1, 4, a3, a4))
#define TD_PARAMS_cuMemsetD2D32Async_ptsz (CUdeviceptr a0, size_t a1, unsigned int a2, size_t a3, size_t a4, CUstream stream)
#define TD_ARGS_cuMemsetD2D32Async_ptsz (a0, a1, a2, a3, a4, stream)
#define TD_WORK_cuMemsetD2D32Async_ptsz (NULL, 0, 0, 0)
#define TD_SPANS_cuMemsetD2D32Async_ptsz (TD_ROWS(a0, a1, 4, a3, a4))
#define TD_PARAMS_cuMemsetD2D8 (unsigned int a0, unsigned int a1, unsigned char a2, unsigned int a3, unsigned int a4)
#define TD_ARGS_cuMemsetD2D8 (a0, a1, a2, a3, a4)
#define TD_WORK_cuMemsetD2D8 (NULL, 0, 0, 0)
#define TD_SPANS_cuMemsetD2D8 false
#define TD_PARAMS_cuMemsetD2D8_v2 (CUdeviceptr a0, size_t a1, unsigned char a2, size_t a3, size_t a4)
#define TD_ARGS_cuMemsetD2D8_v2 (a0, a1, a2, a3, a4)
#define TD_WORK_cuMemsetD2D8_v2 (NULL, 0, 0, 0)
#define TD_SPANS_cuMemsetD2D8_v2 (TD_ROWS(a0, a1, 1, a3, a4))
#define TD_PARAMS_cuMemsetD2D8_v2_ptds (CUdeviceptr a0, size_t a1, unsigned char a2, size_t a3, size_t a4)
#define TD_ARGS_cuMemsetD2D8_v2_ptds (a0, a1, a2, a3, a4)
#define TD_WORK_cuMemsetD2D8_v2_ptds (NULL, 0, 0, 0)
#define TD_SPANS_cuMemsetD2D8_v2_ptds (TD_ROWS(a0, a1, 1, a3, a4))
#define TD_PARAMS_cuMemsetD2D8Async (CUdeviceptr a0, size_t a1, unsigned char a2, size_t a3, size_t a4, CUstream stream)
#define TD_ARGS_cuMemsetD2D8Async (a0, a1, a2, a3, a4, stream)
#define TD_WORK_cuMemsetD2D8Async (NULL, 0, 0, 0)
#define TD_SPANS_cuMemsetD2D8Async (TD_ROWS(a0, a1, 1, a3, a4))
#define TD_PARAMS_cuMemsetD2D8Async_ptsz (CUdeviceptr a0, size_t a1, unsigned char a2, size_t a3, size_t a4, CUstream stream)
#define TD_ARGS_cuMemsetD2D8Async_ptsz (a0, a1, a2, a3, a4, stream)
#define TD_WORK_cuMemsetD2D8Async_ptsz (NULL, 0, 0, 0)
#define TD_SPANS_cuMemsetD2D8Async_ptsz (TD_ROWS(a0, a1, 1, a3, a4))
#define TD_PARAMS_cuMemsetD32 (unsigned int a0, unsigned int a1, unsigned int a2)
#define TD_ARGS_cuMemsetD32 (a0, a1, a2)
#define TD_WORK_cuMemsetD32 (NULL, 0, 0, 0)
#define TD_SPANS_cuMemsetD32 false
#define TD_PARAMS_cuMemsetD32_v2 (CUdeviceptr a0, unsigned int a1, size_t a2)
#define TD_ARGS_cuMemsetD32_v2 (a0, a1, a2)
#define TD_WORK_cuMemsetD32_v2 (NULL, 0, 0, 0)
#define TD_SPANS_cuMemsetD32_v2 (TD_ROWS(a0, 0, 4, a2, 1))
#define TD_PARAMS_cuMemsetD32_v2_ptds (CUdeviceptr a0, unsigned int a1, size_t a2)
#define TD_ARGS_cuMemsetD32_v2_ptds (a0, a1, a2)
#define TD_WORK_cuMemsetD32_v2_ptds (NULL, 0, 0, 0)
#define TD_SPANS_cuMemsetD32_v2_ptds (TD_ROWS(a0, 0, 4, a2, 1))
#define TD_PARAMS_cuMemsetD32Async (CUdeviceptr a0, unsigned int a1, size_t a2, CUstream stream)
#define TD_ARGS_cuMemsetD32Async (a0, a1, a2, stream)
#define TD_WORK_cuMemsetD32Async (NULL, 0, 0, 0)
#define TD_SPANS_cuMemsetD32Async (TD_ROWS(a0, 0, 4, a2, 1))
#define TD_PARAMS_cuMemsetD32Async_ptsz (CUdeviceptr a0, unsigned int a1, size_t a2, CUstream stream)
#define TD_ARGS_cuMemsetD32Async_ptsz (a0, a1, a2, stream)
#define TD_WORK_cuMemsetD32Async_ptsz (NULL, 0, 0, 0)
#define TD_SPANS_cuMemsetD32Async_ptsz (TD_ROWS(a0, 0, 4, a2, 1))
#define TD_PARAMS_cuMemsetD8 (unsigned int a0, unsigned char a1, unsigned int a2)
#define TD_ARGS_cuMemsetD8 (a0, a1, a2)
#define TD_WORK_cuMemsetD8 (NULL, 0, 0, 0)
#define TD_SPANS_cuMemsetD8 false
#define TD_PARAMS_cuMemsetD8_v2 (CUdeviceptr a0, unsigned char a1, size_t a2)
#define TD_ARGS_cuMemsetD8_v2 (a0, a1, a2)
#define TD_WORK_cuMemsetD8_v2 (NULL, 0, 0, 0)
#define TD_SPANS_cuMemsetD8_v2 (TD_ROWS(a0, 0, 1, a2, 1))
#define TD_PARAMS_cuMemsetD8_v2_ptds (CUdeviceptr a0, unsigned char a1, size_t a2)
#define TD_ARGS_cuMemsetD8_v2_ptds (a0, a1, a2)
#define TD_WORK_cuMemsetD8_v2_ptds (NULL, 0, 0, 0)
#define TD_SPANS_cuMemsetD8_v2_ptds (TD_ROWS(a0, 0, 1, a2, 1))
#define TD_PARAMS_cuMemsetD8Async (CUdeviceptr a0, unsigned char a1, size_t a2, CUstream stream)
#define TD_ARGS_cuMemsetD8Async (a0, a1, a2, stream)
#define TD_WORK_cuMemsetD8Async (NULL, 0, 0, 0)
#define TD_SPANS_cuMemsetD8Async (TD_ROWS(a0, 0, 1, a2, 1))
#define TD_PARAMS_cuMemsetD8Async_ptsz (CUdeviceptr a0, unsigned char a1, size_t a2, CUstream stream)
#define TD_ARGS_cuMemsetD8Async_ptsz (a0, a1, a2, stream)
#define TD_WORK_cuMemsetD8Async_ptsz (NULL, 0, 0, 0)
#define TD_SPANS_cuMemsetD8Async_ptsz (TD_ROWS(a0, 0, 1, a2, 1))
#define TD_PARAMS_cuMipmappedArrayCreate (void **a0, const void *a1, unsigned int a2)
#define TD_ARGS_cuMipmappedArrayCreate (a0, a1, a2)
#define TD_WORK_cuMipmappedArrayCreate (NULL, 0, 0, 0)
#define TD_SPANS_cuMipmappedArrayCreate false
#define TD_PARAMS_cuMipmappedArrayDestroy (void *a0)
#define TD_ARGS_cuMipmappedArrayDestroy (a0)
#define TD_WORK_cuMipmappedArrayDestroy (NULL, 0, 0, 0)
#define TD_SPANS_cuMipmappedArrayDestroy false
#define TD_PARAMS_cuMipmappedArrayGetLevel (void **a0, void *a1, unsigned int a2)
#define TD_ARGS_cuMipmappedArrayGetLevel (a0, a1, a2)
#define TD_WORK_cuMipmappedArrayGetLevel (NULL, 0, 0, 0)
#define TD_SPANS_cuMipmappedArrayGetLevel false
#define TD_PARAMS_cuMipmappedArrayGetMemoryRequirements (void *a0, void *a1, CUdevice a2)
#define TD_ARGS_cuMipmappedArrayGetMemoryRequirements (a0, a1, a2)
#define TD_WORK_cuMipmappedArrayGetMemoryRequirements (NULL, 0, 0, 0)
#define TD_SPANS_cuMipmappedArrayGetMemoryRequirements false
#define TD_PARAMS_cuMipmappedArrayGetSparseProperties (void *a0, void *a1)
#define TD_ARGS_cuMipmappedArrayGetSparseProperties (a0, a1)
#define TD_WORK_cuMipmappedArrayGetSparseProperties (NULL, 0, 0, 0)
#define TD_SPANS_cuMipmappedArrayGetSparseProperties false
#define TD_PARAMS_cuModuleEnumerateFunctions (CUfunction *a0, unsigned int a1, CUmodule a2)
#define TD_ARGS_cuModuleEnumerateFunctions (a0, a1, a2)
#define TD_WORK_cuModuleEnumerateFunctions (NULL, 0, 0, 0)
#define TD_SPANS_cuModuleEnumerateFunctions false
#define TD_PARAMS_cuModuleGetFunction (CUfunction *a0, CUmodule a1, const char *a2)
#define TD_ARGS_cuModuleGetFunction (a0, a1, a2)
#define TD_WORK_cuModuleGetFunction (NULL, 0, 0, 0)
#define TD_SPANS_cuModuleGetFunction false
#define TD_PARAMS_cuModuleGetFunctionCount (unsigned int *a0, CUmodule a1)
#define TD_ARGS_cuModuleGetFunctionCount (a0, a1)
#define TD_WORK_cuModuleGetFunctionCount (NULL, 0, 0, 0)
#define TD_SPANS_cuModuleGetFunctionCount false
#define TD_PARAMS_cuModuleGetGlobal (unsigned int *a0, unsigned int *a1, CUmodule a2, const char *a3)
#define TD_ARGS_cuModuleGetGlobal (a0, a1, a2, a3)
#define TD_WORK_cuModuleGetGlobal (NULL, 0, 0, 0)
#define TD_SPANS_cuModuleGetGlobal false
#define TD_PARAMS_cuModuleGetGlobal_v2 (CUdeviceptr *a0, size_t *a1, CUmodule a2, const char *a3)
#define TD_ARGS_cuModuleGetGlobal_v2 (a0, a1, a2, a3)
#define TD_WORK_cuModuleGetGlobal_v2 (NULL, 0, 0, 0)
#define TD_SPANS_cuModuleGetGlobal_v2 false
#define TD_PARAMS_cuModuleGetLoadingMode (int *a0)
#define TD_ARGS_cuModuleGetLoadingMode (a0)
#define TD_WORK_cuModuleGetLoadingMode (NULL, 0, 0, 0)
#define TD_SPANS_cuModuleGetLoadingMode false
#define TD_PARAMS_cuModuleGetSurfRef (void **a0, CUmodule a1, const char *a2)
#define TD_ARGS_cuModuleGetSurfRef (a0, a1, a2)
#define TD_WORK_cuModuleGetSurfRef (NULL, 0, 0, 0)
#define TD_SPANS_cuModuleGetSurfRef false
#define TD_PARAMS_cuModuleGetTexRef (void **a0, CUmodule a1, const char *a2)
#define TD_ARGS_cuModuleGetTexRef (a0, a1, a2)
#define TD_WORK_cuModuleGetTexRef (NULL, 0, 0, 0)
#define TD_SPANS_cuModuleGetTexRef false
#define TD_PARAMS_cuModuleLoad (CUmodule *a0, const char *a1)
#define TD_ARGS_cuModuleLoad (a0, a1)
#define TD_WORK_cuModuleLoad (NULL, 0, 0, 0)
#define TD_SPANS_cuModuleLoad false
#define TD_PARAMS_cuModuleLoadData (CUmodule *a0, const void *a1)
#define TD_ARGS_cuModuleLoadData (a0, a1)
#define TD_WORK_cuModuleLoadData (NULL, 0, 0, 0)
#define TD_SPANS_cuModuleLoadData false
#define TD_PARAMS_cuModuleLoadDataEx (CUmodule *a0, const void *a1, unsigned int a2, int *a3, void **a4)
#define TD_ARGS_cuModuleLoadDataEx (a0, a1, a2, a3, a4)
#define TD_WORK_cuModuleLoadDataEx (NULL, 0, 0, 0)
#define TD_SPANS_cuModuleLoadDataEx false
#define TD_PARAMS_cuModuleLoadFatBinary (CUmodule *a0, const void *a1)
#define TD_ARGS_cuModuleLoadFatBinary (a0, a1)
#define TD_WORK_cuModuleLoadFatBinary (NULL, 0, 0, 0)
#define TD_SPANS_cuModuleLoadFatBinary false
#define TD_PARAMS_cuModuleUnload (CUmodule a0)
#define TD_ARGS_cuModuleUnload (a0)
#define TD_WORK_cuModuleUnload (NULL, 0, 0, 0)
#define TD_SPANS_cuModuleUnload false
#define TD_PARAMS_cuMulticastAddDevice (CUmemGenericAllocationHandle a0, CUdevice a1)
#define TD_ARGS_cuMulticastAddDevice (a0, a1)
#define TD_WORK_cuMulticastAddDevice (NULL, 0, 0, 0)
#define TD_SPANS_cuMulticastAddDevice false
#define TD_PARAMS_cuMulticastBindAddr (CUmemGenericAllocationHandle a0, size_t a1, CUdeviceptr a2, size_t a3, unsigned long long a4)
#define TD_ARGS_cuMulticastBindAddr (a0, a1, a2, a3, a4)
#define TD_WORK_cuMulticastBindAddr (NULL, 0, 0, 0)
#define TD_SPANS_cuMulticastBindAddr false
#define TD_PARAMS_cuMulticastBindMem (CUmemGenericAllocationHandle a0, size_t a1, CUmemGenericAllocationHandle a2, size_t a3, size_t a4, unsigned long long a5)
#define TD_ARGS_cuMulticastBindMem (a0, a1, a2, a3, a4, a5)
#define TD_WORK_cuMulticastBindMem (NULL, 0, 0, 0)
#define TD_SPANS_cuMulticastBindMem false
#define TD_PARAMS_cuMulticastCreate (CUmemGenericAllocationHandle *a0, const void *a1)
#define TD_ARGS_cuMulticastCreate (a0, a1)
#define TD_WORK_cuMulticastCreate (NULL, 0, 0, 0)
#define TD_SPANS_cuMulticastCreate false
#define TD_PARAMS_cuMulticastGetGranularity (size_t *a0, const void *a1, int a2)
#define TD_ARGS_cuMulticastGetGranularity (a0, a1, a2)
#define TD_WORK_cuMulticastGetGranularity (NULL, 0, 0, 0)
#define TD_SPANS_cuMulticastGetGranularity false
#define TD_PARAMS_cuMulticastUnbind (CUmemGenericAllocationHandle a0, CUdevice a1, size_t a2, size_t a3)
#define TD_ARGS_cuMulticastUnbind (a0, a1, a2, a3)
#define TD_WORK_cuMulticastUnbind (NULL, 0, 0, 0)
#define TD_SPANS_cuMulticastUnbind false
#define TD_PARAMS_cuOccupancyAvailableDynamicSMemPerBlock (size_t *a0, CUfunction a1, int a2, int a3)
#define TD_ARGS_cuOccupancyAvailableDynamicSMemPerBlock (a0, a1, a2, a3)
#define TD_WORK_cuOccupancyAvailableDynamicSMemPerBlock (NULL, 0, 0, 0)
#define TD_SPANS_cuOccupancyAvailableDynamicSMemPerBlock false
#define TD_PARAMS_cuOccupancyMaxActiveBlocksPerMultiprocessor (int *a0, CUfunction a1, int a2, size_t a3)
#define TD_ARGS_cuOccupancyMaxActiveBlocksPerMultiprocessor (a0, a1, a2, a3)
#define TD_WORK_cuOccupancyMaxActiveBlocksPerMultiprocessor (NULL, 0, 0, 0)
#define TD_SPANS_cuOccupancyMaxActiveBlocksPerMultiprocessor false
#define TD_PARAMS_cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags (int *a0, CUfunction a1, int a2, size_t a3, unsigned int a4)
#define TD_ARGS_cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags (a0, a1, a2, a3, a4)
#define TD_WORK_cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags (NULL, 0, 0, 0)
#define TD_SPANS_cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags false
#define TD_PARAMS_cuOccupancyMaxActiveClusters (int *a0, CUfunction a1, const CUlaunchConfig *config)
#define TD_ARGS_cuOccupancyMaxActiveClusters (a0, a1, config)
#define TD_WORK_cuOccupancyMaxActiveClusters (a1, config ? config->gridDimX : 0, config ? config->gridDimY : 0, config ? config->gridDimZ : 0)
#define TD_SPANS_cuOccupancyMaxActiveClusters false
#define TD_PARAMS_cuOccupancyMaxPotentialBlockSize (int *a0, int *a1, CUfunction a2, void *a3, size_t a4, int a5)
#define TD_ARGS_cuOccupancyMaxPotentialBlockSize (a0, a1, a2, a3, a4, a5)
#define TD_WORK_cuOccupancyMaxPotentialBlockSize (NULL, 0, 0, 0)
#define TD_SPANS_cuOccupancyMaxPotentialBlockSize false
#define TD_PARAMS_cuOccupancyMaxPotentialBlockSizeWithFlags (int *a0, int *a1, CUfunction a2, void *a3, size_t a4, int a5, unsigned int a6)
#define TD_ARGS_cuOccupancyMaxPotentialBlockSizeWithFlags (a0, a1, a2, a3, a4, a5, a6)
#define TD_WORK_cuOccupancyMaxPotentialBlockSizeWithFlags (NULL, 0, 0, 0)
#define TD_SPANS_cuOccupancyMaxPotentialBlockSizeWithFlags false
#define TD_PARAMS_cuOccupancyMaxPotentialClusterSize (int *a0, CUfunction a1, const CUlaunchConfig *config)
#define TD_ARGS_cuOccupancyMaxPotentialClusterSize (a0, a1, config)
#define TD_WORK_cuOccupancyMaxPotentialClusterSize (a1, config ? config->gridDimX : 0, config ? config->gridDimY : 0, config ? config->gridDimZ : 0)
#define TD_SPANS_cuOccupancyMaxPotentialClusterSize false
#define TD_PARAMS_cuParamSetSize (CUfunction a0, unsigned int a1)
#define TD_ARGS_cuParamSetSize (a0, a1)
#define TD_WORK_cuParamSetSize (NULL, 0, 0, 0)
#define TD_SPANS_cuParamSetSize false
#define TD_PARAMS_cuParamSetTexRef (CUfunction a0, int a1, void *a2)
#define TD_ARGS_cuParamSetTexRef (a0, a1, a2)
#define TD_WORK_cuParamSetTexRef (NULL, 0, 0, 0)
#define TD_SPANS_cuParamSetTexRef false
#define TD_PARAMS_cuParamSetf (CUfunction a0, int a1, float a2)
#define TD_ARGS_cuParamSetf (a0, a1, a2)
#define TD_WORK_cuParamSetf (NULL, 0, 0, 0)
#define TD_SPANS_cuParamSetf false
#define TD_PARAMS_cuParamSeti (CUfunction a0, int a1, unsigned int a2)
#define TD_ARGS_cuParamSeti (a0, a1, a2)
#define TD_WORK_cuParamSeti (NULL, 0, 0, 0)
#define TD_SPANS_cuParamSeti false
#define TD_PARAMS_cuParamSetv (CUfunction a0, int a1, void *a2, unsigned int a3)
#define TD_ARGS_cuParamSetv (a0, a1, a2, a3)
#define TD_WORK_cuParamSetv (NULL, 0, 0, 0)
#define TD_SPANS_cuParamSetv false
#define TD_PARAMS_cuPointerGetAttribute (void *a0, int a1, CUdeviceptr a2)
#define TD_ARGS_cuPointerGetAttribute (a0, a1, a2)
#define TD_WORK_cuPointerGetAttribute (NULL, 0, 0, 0)
#define TD_SPANS_cuPointerGetAttribute false
#define TD_PARAMS_cuPointerGetAttributes (unsigned int a0, int *a1, void **a2, CUdeviceptr a3)
#define TD_ARGS_cuPointerGetAttributes (a0, a1, a2, a3)
#define TD_WORK_cuPointerGetAttributes (NULL, 0, 0, 0)
#define TD_SPANS_cuPointerGetAttributes false
#define TD_PARAMS_cuPointerSetAttribute (const void *a0, int a1, CUdeviceptr a2)
#define TD_ARGS_cuPointerSetAttribute (a0, a1, a2)
#define TD_WORK_cuPointerSetAttribute (NULL, 0, 0, 0)
#define TD_SPANS_cuPointerSetAttribute false
#define TD_PARAMS_cuProfilerInitialize (const char *a0, const char *a1, int a2)
#define TD_ARGS_cuProfilerInitialize (a0, a1, a2)
#define TD_WORK_cuProfilerInitialize (NULL, 0, 0, 0)
#define TD_SPANS_cuProfilerInitialize false
#define TD_PARAMS_cuProfilerStart (void)
#define TD_ARGS_cuProfilerStart ()
#define TD_WORK_cuProfilerStart (NULL, 0, 0, 0)
#define TD_SPANS_cuProfilerStart false
#define TD_PARAMS_cuProfilerStop (void)
#define TD_ARGS_cuProfilerStop ()
#define TD_WORK_cuProfilerStop (NULL, 0, 0, 0)
#define TD_SPANS_cuProfilerStop false
#define TD_PARAMS_cuSignalExternalSemaphoresAsync (const void **a0, const void *a1, unsigned int a2, CUstream stream)
#define TD_ARGS_cuSignalExternalSemaphoresAsync (a0, a1, a2, stream)
#define TD_WORK_cuSignalExternalSemaphoresAsync (NULL, 0, 0, 0)
#define TD_SPANS_cuSignalExternalSemaphoresAsync false
#define TD_PARAMS_cuSignalExternalSemaphoresAsync_ptsz (const void **a0, const void *a1, unsigned int a2, CUstream stream)
#define TD_ARGS_cuSignalExternalSemaphoresAsync_ptsz (a0, a1, a2, stream)
#define TD_WORK_cuSignalExternalSemaphoresAsync_ptsz (NULL, 0, 0, 0)
#define TD_SPANS_cuSignalExternalSemaphoresAsync_ptsz false
#define TD_PARAMS_cuStreamAddCallback (CUstream stream, CUstreamCallback a1, void *a2, unsigned int a3)
#define TD_ARGS_cuStreamAddCallback (stream, a1, a2, a3)
#define TD_WORK_cuStreamAddCallback (NULL, 0, 0, 0)
#define TD_SPANS_cuStreamAddCallback false
#define TD_PARAMS_cuStreamAddCallback_ptsz (CUstream stream, CUstreamCallback a1, void *a2, unsigned int a3)
#define TD_ARGS_cuStreamAddCallback_ptsz (stream, a1, a2, a3)
#define TD_WORK_cuStreamAddCallback_ptsz (NULL, 0, 0, 0)
#define TD_SPANS_cuStreamAddCallback_ptsz false
#define TD_PARAMS_cuStreamAttachMemAsync (CUstream stream, CUdeviceptr a1, size_t a2, unsigned int a3)
#define TD_ARGS_cuStreamAttachMemAsync (stream, a1, a2, a3)
#define TD_WORK_cuStreamAttachMemAsync (NULL, 0, 0, 0)
#define TD_SPANS_cuStreamAttachMemAsync false
#define TD_PARAMS_cuStreamAttachMemAsync_ptsz (CUstream stream, CUdeviceptr a1, size_t a2, unsigned int a3)
#define TD_ARGS_cuStreamAttachMemAsync_ptsz (stream, a1, a2, a3)
#define TD_WORK_cuStreamAttachMemAsync_ptsz (NULL, 0, 0, 0)
#define TD_SPANS_cuStreamAttachMemAsync_ptsz false
#define TD_PARAMS_cuStreamBatchMemOp (CUstream stream, unsigned int a1, void *a2, unsigned int a3)
#define TD_ARGS_cuStreamBatchMemOp (stream, a1, a2, a3)
#define TD_WORK_cuStreamBatchMemOp (NULL, 0, 0, 0)
#define TD_SPANS_cuStreamBatchMemOp false
#define TD_PARAMS_cuStreamBatchMemOp_ptsz (CUstream stream, unsigned int a1, void *a2, unsigned int a3)
#define TD_ARGS_cuStreamBatchMemOp_ptsz (stream, a1, a2, a3)
#define TD_WORK_cuStreamBatchMemOp_ptsz (NULL, 0, 0, 0)
#define TD_SPANS_cuStreamBatchMemOp_ptsz false
#define TD_PARAMS_cuStreamBatchMemOp_v2 (CUstream stream, unsigned int a1, void *a2, unsigned int a3)
#define TD_ARGS_cuStreamBatchMemOp_v2 (stream, a1, a2, a3)
#define TD_WORK_cuStreamBatchMemOp_v2 (NULL, 0, 0, 0)
#define TD_SPANS_cuStreamBatchMemOp_v2 false
#define TD_PARAMS_cuStreamBatchMemOp_v2_ptsz (CUstream stream, unsigned int a1, void *a2, unsigned int a3)
#define TD_ARGS_cuStreamBatchMemOp_v2_ptsz (stream, a1, a2, a3)
#define TD_WORK_cuStreamBatchMemOp_v2_ptsz (NULL, 0, 0, 0)
#define TD_SPANS_cuStreamBatchMemOp_v2_ptsz false
#define TD_PARAMS_cuStreamBeginCapture (CUstream stream)
#define TD_ARGS_cuStreamBeginCapture (stream)
#define TD_WORK_cuStreamBeginCapture (NULL, 0, 0, 0)
#define TD_SPANS_cuStreamBeginCapture false
#define TD_PARAMS_cuStreamBeginCapture_ptsz (CUstream stream)
#define TD_ARGS_cuStreamBeginCapture_ptsz (stream)
#define TD_WORK_cuStreamBeginCapture_ptsz (NULL, 0, 0, 0)
#define TD_SPANS_cuStreamBeginCapture_ptsz false
#define TD_PARAMS_cuStreamBeginCapture_v2 (CUstream stream, int a1)
#define TD_ARGS_cuStreamBeginCapture_v2 (stream, a1)
#define TD_WORK_cuStreamBeginCapture_v2 (NULL, 0, 0, 0)
#define TD_SPANS_cuStreamBeginCapture_v2 false
#define TD_PARAMS_cuStreamBeginCapture_v2_ptsz (CUstream stream, int a1)
#define TD_ARGS_cuStreamBeginCapture_v2_ptsz (stream, a1)
#define TD_WORK_cuStreamBeginCapture_v2_ptsz (NULL, 0, 0, 0)
#define TD_SPANS_cuStreamBeginCapture_v2_ptsz false
#define TD_PARAMS_cuStreamBeginCaptureToGraph (CUstream stream, void *a1, const void **a2, const void *a3, size_t a4, int a5)
#define TD_ARGS_cuStreamBeginCaptureToGraph (stream, a1, a2, a3, a4, a5)
#define TD_WORK_cuStreamBeginCaptureToGraph (NULL, 0, 0, 0)
#define TD_SPANS_cuStreamBeginCaptureToGraph false
#define TD_PARAMS_cuStreamBeginCaptureToGraph_ptsz (CUstream stream, void *a1, const void **a2, const void *a3, size_t a4, int a5)
#define TD_ARGS_cuStreamBeginCaptureToGraph_ptsz (stream, a1, a2, a3, a4, a5)
#define TD_WORK_cuStreamBeginCaptureToGraph_ptsz (NULL, 0, 0, 0)
#define TD_SPANS_cuStreamBeginCaptureToGraph_ptsz false
#define TD_PARAMS_cuStreamCopyAttributes (CUstream a0, CUstream a1)
#define TD_ARGS_cuStreamCopyAttributes (a0, a1)
#define TD_WORK_cuStreamCopyAttributes (NULL, 0, 0, 0)
#define TD_SPANS_cuStreamCopyAttributes false
#define TD_PARAMS_cuStreamCopyAttributes_ptsz (CUstream a0, CUstream a1)
#define TD_ARGS_cuStreamCopyAttributes_ptsz (a0, a1)
#define TD_WORK_cuStreamCopyAttributes_ptsz (NULL, 0, 0, 0)
#define TD_SPANS_cuStreamCopyAttributes_ptsz false
#define TD_PARAMS_cuStreamCreate (CUstream *a0, unsigned int a1)
#define TD_ARGS_cuStreamCreate (a0, a1)
#define TD_WORK_cuStreamCreate (NULL, 0, 0, 0)
#define TD_SPANS_cuStreamCreate false
#define TD_PARAMS_cuStreamCreateWithPriority (CUstream *a0, unsigned int a1, int a2)
#define TD_ARGS_cuStreamCreateWithPriority (a0, a1, a2)
#define TD_WORK_cuStreamCreateWithPriority (NULL, 0, 0, 0)
#define TD_SPANS_cuStreamCreateWithPriority false
#define TD_PARAMS_cuStreamDestroy (CUstream stream)
#define TD_ARGS_cuStreamDestroy (stream)
#define TD_WORK_cuStreamDestroy (NULL, 0, 0, 0)
#define TD_SPANS_cuStreamDestroy false
#define TD_PARAMS_cuStreamDestroy_v2 (CUstream stream)
#define TD_ARGS_cuStreamDestroy_v2 (stream)
#define TD_WORK_cuStreamDestroy_v2 (NULL, 0, 0, 0)
#define TD_SPANS_cuStreamDestroy_v2 false
#define TD_PARAMS_cuStreamEndCapture (CUstream stream, void **a1)
#define TD_ARGS_cuStreamEndCapture (stream, a1)
#define TD_WORK_cuStreamEndCapture (NULL, 0, 0, 0)
#define TD_SPANS_cuStreamEndCapture false
#define TD_PARAMS_cuStreamEndCapture_ptsz (CUstream stream, void **a1)
#define TD_ARGS_cuStreamEndCapture_ptsz (stream, a1)
#define TD_WORK_cuStreamEndCapture_ptsz (NULL, 0, 0, 0)
#define TD_SPANS_cuStreamEndCapture_ptsz false
#define TD_PARAMS_cuStreamGetAttribute (CUstream stream, int a1, void *a2)
#define TD_ARGS_cuStreamGetAttribute (stream, a1, a2)
#define TD_WORK_cuStreamGetAttribute (NULL, 0, 0, 0)
#define TD_SPANS_cuStreamGetAttribute false
#define TD_PARAMS_cuStreamGetAttribute_ptsz (CUstream stream, int a1, void *a2)
#define TD_ARGS_cuStreamGetAttribute_ptsz (stream, a1, a2)
#define TD_WORK_cuStreamGetAttribute_ptsz (NULL, 0, 0, 0)
#define TD_SPANS_cuStreamGetAttribute_ptsz false
#define TD_PARAMS_cuStreamGetCaptureInfo (CUstream stream, int *a1, uint64_t *a2)
#define TD_ARGS_cuStreamGetCaptureInfo (stream, a1, a2)
#define TD_WORK_cuStreamGetCaptureInfo (NULL, 0, 0, 0)
#define TD_SPANS_cuStreamGetCaptureInfo false
#define TD_PARAMS_cuStreamGetCaptureInfo_ptsz (CUstream stream, int *a1, uint64_t *a2)
#define TD_ARGS_cuStreamGetCaptureInfo_ptsz (stream, a1, a2)
#define TD_WORK_cuStreamGetCaptureInfo_ptsz (NULL, 0, 0, 0)
#define TD_SPANS_cuStreamGetCaptureInfo_ptsz false
#define TD_PARAMS_cuStreamGetCaptureInfo_v2 (CUstream stream, int *a1, uint64_t *a2, void **a3, const void ***a4, size_t *a5)
#define TD_ARGS_cuStreamGetCaptureInfo_v2 (stream, a1, a2, a3, a4, a5)
#define TD_WORK_cuStreamGetCaptureInfo_v2 (NULL, 0, 0, 0)
#define TD_SPANS_cuStreamGetCaptureInfo_v2 false
#define TD_PARAMS_cuStreamGetCaptureInfo_v2_ptsz (CUstream stream, int *a1, uint64_t *a2, void **a3, const void ***a4, size_t *a5)
#define TD_ARGS_cuStreamGetCaptureInfo_v2_ptsz (stream, a1, a2, a3, a4, a5)
#define TD_WORK_cuStreamGetCaptureInfo_v2_ptsz (NULL, 0, 0, 0)
#define TD_SPANS_cuStreamGetCaptureInfo_v2_ptsz false
#define TD_PARAMS_cuStreamGetCaptureInfo_v3 (CUstream stream, int *a1, uint64_t *a2, void **a3, const void ***a4, void **a5, size_t *a6)
#define TD_ARGS_cuStreamGetCaptureInfo_v3 (stream, a1, a2, a3, a4, a5, a6)
#define TD_WORK_cuStreamGetCaptureInfo_v3 (NULL, 0, 0, 0)
#define TD_SPANS_cuStreamGetCaptureInfo_v3 false
#define TD_PARAMS_cuStreamGetCaptureInfo_v3_ptsz (CUstream stream, int *a1, uint64_t *a2, void **a3, const void ***a4, void **a5, size_t *a6)
#define TD_ARGS_cuStreamGetCaptureInfo_v3_ptsz (stream, a1, a2, a3, a4, a5, a6)
#define TD_WORK_cuStreamGetCaptureInfo_v3_ptsz (NULL, 0, 0, 0)
#define TD_SPANS_cuStreamGetCaptureInfo_v3_ptsz false
#define TD_PARAMS_cuStreamGetCtx (CUstream stream, CUcontext *a1)
#define TD_ARGS_cuStreamGetCtx (stream, a1)
#define TD_WORK_cuStreamGetCtx (NULL, 0, 0, 0)
#define TD_SPANS_cuStreamGetCtx false
#define TD_PARAMS_cuStreamGetCtx_ptsz (CUstream stream, CUcontext *a1)
#define TD_ARGS_cuStreamGetCtx_ptsz (stream, a1)
#define TD_WORK_cuStreamGetCtx_ptsz (NULL, 0, 0, 0)
#define TD_SPANS_cuStreamGetCtx_ptsz false
#define TD_PARAMS_cuStreamGetCtx_v2 (CUstream stream, CUcontext *a1, void **a2)
#define TD_ARGS_cuStreamGetCtx_v2 (stream, a1, a2)
#define TD_WORK_cuStreamGetCtx_v2 (NULL, 0, 0, 0)
#define TD_SPANS_cuStreamGetCtx_v2 false
#define TD_PARAMS_cuStreamGetCtx_v2_ptsz (CUstream stream, CUcontext *a1, void **a2)
#define TD_ARGS_cuStreamGetCtx_v2_ptsz (stream, a1, a2)
#define TD_WORK_cuStreamGetCtx_v2_ptsz (NULL, 0, 0, 0)
#define TD_SPANS_cuStreamGetCtx_v2_ptsz false
#define TD_PARAMS_cuStreamGetDevice (CUstream stream, CUdevice *a1)
#define TD_ARGS_cuStreamGetDevice (stream, a1)
#define TD_WORK_cuStreamGetDevice (NULL, 0, 0, 0)
#define TD_SPANS_cuStreamGetDevice false
#define TD_PARAMS_cuStreamGetDevice_ptsz (CUstream stream, CUdevice *a1)
#define TD_ARGS_cuStreamGetDevice_ptsz (stream, a1)
#define TD_WORK_cuStreamGetDevice_ptsz (NULL, 0, 0, 0)
#define TD_SPANS_cuStreamGetDevice_ptsz false
#define TD_PARAMS_cuStreamGetFlags (CUstream stream, unsigned int *a1)
#define TD_ARGS_cuStreamGetFlags (stream, a1)
#define TD_WORK_cuStreamGetFlags (NULL, 0, 0, 0)
#define TD_SPANS_cuStreamGetFlags false
#define TD_PARAMS_cuStreamGetFlags_ptsz (CUstream stream, unsigned int *a1)
#define TD_ARGS_cuStreamGetFlags_ptsz (stream, a1)
#define TD_WORK_cuStreamGetFlags_ptsz (NULL, 0, 0, 0)
#define TD_SPANS_cuStreamGetFlags_ptsz false
#define TD_PARAMS_cuStreamGetGreenCtx (CUstream stream, void **a1)
#define TD_ARGS_cuStreamGetGreenCtx (stream, a1)
#define TD_WORK_cuStreamGetGreenCtx (NULL, 0, 0, 0)
#define TD_SPANS_cuStreamGetGreenCtx false
#define TD_PARAMS_cuStreamGetId (CUstream stream, unsigned long long *a1)
#define TD_ARGS_cuStreamGetId (stream, a1)
#define TD_WORK_cuStreamGetId (NULL, 0, 0, 0)
#define TD_SPANS_cuStreamGetId false
#define TD_PARAMS_cuStreamGetId_ptsz (CUstream stream, unsigned long long *a1)
#define TD_ARGS_cuStreamGetId_ptsz (stream, a1)
#define TD_WORK_cuStreamGetId_ptsz (NULL, 0, 0, 0)
#define TD_SPANS_cuStreamGetId_ptsz false
#define TD_PARAMS_cuStreamGetPriority (CUstream stream, int *a1)
#define TD_ARGS_cuStreamGetPriority (stream, a1)
#define TD_WORK_cuStreamGetPriority (NULL, 0, 0, 0)
#define TD_SPANS_cuStreamGetPriority false
#define TD_PARAMS_cuStreamGetPriority_ptsz (CUstream stream, int *a1)
#define TD_ARGS_cuStreamGetPriority_ptsz (stream, a1)
#define TD_WORK_cuStreamGetPriority_ptsz (NULL, 0, 0, 0)
#define TD_SPANS_cuStreamGetPriority_ptsz false
#define TD_PARAMS_cuStreamIsCapturing (CUstream stream, int *a1)
#define TD_ARGS_cuStreamIsCapturing (stream, a1)
#define TD_WORK_cuStreamIsCapturing (NULL, 0, 0, 0)
#define TD_SPANS_cuStreamIsCapturing false
#define TD_PARAMS_cuStreamIsCapturing_ptsz (CUstream stream, int *a1)
#define TD_ARGS_cuStreamIsCapturing_ptsz (stream, a1)
#define TD_WORK_cuStreamIsCapturing_ptsz (NULL, 0, 0, 0)
#define TD_SPANS_cuStreamIsCapturing_ptsz false
#define TD_PARAMS_cuStreamQuery (CUstream stream)
#define TD_ARGS_cuStreamQuery (stream)
#define TD_WORK_cuStreamQuery (NULL, 0, 0, 0)
#define TD_SPANS_cuStreamQuery false
#define TD_PARAMS_cuStreamQuery_ptsz (CUstream stream)
#define TD_ARGS_cuStreamQuery_ptsz (stream)
#define TD_WORK_cuStreamQuery_ptsz (NULL, 0, 0, 0)
#define TD_SPANS_cuStreamQuery_ptsz false
#define TD_PARAMS_cuStreamSetAttribute (CUstream stream, int a1, const void *a2)
#define TD_ARGS_cuStreamSetAttribute (stream, a1, a2)
#define TD_WORK_cuStreamSetAttribute (NULL, 0, 0, 0)
#define TD_SPANS_cuStreamSetAttribute false
#define TD_PARAMS_cuStreamSetAttribute_ptsz (CUstream stream, int a1, const void *a2)
#define TD_ARGS_cuStreamSetAttribute_ptsz (stream, a1, a2)
#define TD_WORK_cuStreamSetAttribute_ptsz (NULL, 0, 0, 0)
#define TD_SPANS_cuStreamSetAttribute_ptsz false
#define TD_PARAMS_cuStreamSynchronize (CUstream stream)
#define TD_ARGS_cuStreamSynchronize (stream)
#define TD_WORK_cuStreamSynchronize (NULL, 0, 0, 0)
#define TD_SPANS_cuStreamSynchronize false
#define TD_PARAMS_cuStreamSynchronize_ptsz (CUstream stream)
#define TD_ARGS_cuStreamSynchronize_ptsz (stream)
#define TD_WORK_cuStreamSynchronize_ptsz (NULL, 0, 0, 0)
#define TD_SPANS_cuStreamSynchronize_ptsz false
#define TD_PARAMS_cuStreamUpdateCaptureDependencies (CUstream stream, void **a1, size_t a2, unsigned int a3)
#define TD_ARGS_cuStreamUpdateCaptureDependencies (stream, a1, a2, a3)
#define TD_WORK_cuStreamUpdateCaptureDependencies (NULL, 0, 0, 0)
#define TD_SPANS_cuStreamUpdateCaptureDependencies false
#define TD_PARAMS_cuStreamUpdateCaptureDependencies_ptsz (CUstream stream, void **a1, size_t a2, unsigned int a3)
#define TD_ARGS_cuStreamUpdateCaptureDependencies_ptsz (stream, a1, a2, a3)
#define TD_WORK_cuStreamUpdateCaptureDependencies_ptsz (NULL, 0, 0, 0)
#define TD_SPANS_cuStreamUpdateCaptureDependencies_ptsz false
#define TD_PARAMS_cuStreamUpdateCaptureDependencies_v2 (CUstream stream, void **a1, const void *a2, size_t a3, unsigned int a4)
#define TD_ARGS_cuStreamUpdateCaptureDependencies_v2 (stream, a1, a2, a3, a4)
#define TD_WORK_cuStreamUpdateCaptureDependencies_v2 (NULL, 0, 0, 0)
#define TD_SPANS_cuStreamUpdateCaptureDependencies_v2 false
#define TD_PARAMS_cuStreamUpdateCaptureDependencies_v2_ptsz (CUstream stream, void **a1, const void *a2, size_t a3, unsigned int a4)
#define TD_ARGS_cuStreamUpdateCaptureDependencies_v2_ptsz (stream, a1, a2, a3, a4)
#define TD_WORK_cuStreamUpdateCaptureDependencies_v2_ptsz (NULL, 0, 0, 0)
#define TD_SPANS_cuStreamUpdateCaptureDependencies_v2_ptsz false
#define TD_PARAMS_cuStreamWaitEvent (CUstream stream, CUevent a1, unsigned int a2)
#define TD_ARGS_cuStreamWaitEvent (stream, a1, a2)
#define TD_WORK_cuStreamWaitEvent (NULL, 0, 0, 0)
#define TD_SPANS_cuStreamWaitEvent false
#define TD_PARAMS_cuStreamWaitEvent_ptsz (CUstream stream, CUevent a1, unsigned int a2)
#define TD_ARGS_cuStreamWaitEvent_ptsz (stream, a1, a2)
#define TD_WORK_cuStreamWaitEvent_ptsz (NULL, 0, 0, 0)
#define TD_SPANS_cuStreamWaitEvent_ptsz false
#define TD_PARAMS_cuStreamWaitValue32 (CUstream stream, CUdeviceptr a1, uint32_t a2, unsigned int a3)
#define TD_ARGS_cuStreamWaitValue32 (stream, a1, a2, a3)
#define TD_WORK_cuStreamWaitValue32 (NULL, 0, 0, 0)
#define TD_SPANS_cuStreamWaitValue32 false
#define TD_PARAMS_cuStreamWaitValue32_ptsz (CUstream stream, CUdeviceptr a1, uint32_t a2, unsigned int a3)
#define TD_ARGS_cuStreamWaitValue32_ptsz (stream, a1, a2, a3)
#define TD_WORK_cuStreamWaitValue32_ptsz (NULL, 0, 0, 0)
#define TD_SPANS_cuStreamWaitValue32_ptsz false
#define TD_PARAMS_cuStreamWaitValue32_v2 (CUstream stream, CUdeviceptr a1, uint32_t a2, unsigned int a3)
#define TD_ARGS_cuStreamWaitValue32_v2 (stream, a1, a2, a3)
#define TD_WORK_cuStreamWaitValue32_v2 (NULL, 0, 0, 0)
#define TD_SPANS_cuStreamWaitValue32_v2 false
#define TD_PARAMS_cuStreamWaitValue32_v2_ptsz (CUstream stream, CUdeviceptr a1, uint32_t a2, unsigned int a3)
#define TD_ARGS_cuStreamWaitValue32_v2_ptsz (stream, a1, a2, a3)
#define TD_WORK_cuStreamWaitValue32_v2_ptsz (NULL, 0, 0, 0)
#define TD_SPANS_cuStreamWaitValue32_v2_ptsz false
#define TD_PARAMS_cuStreamWaitValue64 (CUstream stream, CUdeviceptr a1, uint64_t a2, unsigned int a3)
#define TD_ARGS_cuStreamWaitValue64 (stream, a1, a2, a3)
#define TD_WORK_cuStreamWaitValue64 (NULL, 0, 0, 0)
#define TD_SPANS_cuStreamWaitValue64 false
#define TD_PARAMS_cuStreamWaitValue64_ptsz (CUstream stream, CUdeviceptr a1, uint64_t a2, unsigned int a3)
#define TD_ARGS_cuStreamWaitValue64_ptsz (stream, a1, a2, a3)
#define TD_WORK_cuStreamWaitValue64_ptsz (NULL, 0, 0, 0)
#define TD_SPANS_cuStreamWaitValue64_ptsz false
#define TD_PARAMS_cuStreamWaitValue64_v2 (CUstream stream, CUdeviceptr a1, uint64_t a2, unsigned int a3)
#define TD_ARGS_cuStreamWaitValue64_v2 (stream, a1, a2, a3)
#define TD_WORK_cuStreamWaitValue64_v2 (NULL, 0, 0, 0)
#define TD_SPANS_cuStreamWaitValue64_v2 false
#define TD_PARAMS_cuStreamWaitValue64_v2_ptsz (CUstream stream, CUdeviceptr a1, uint64_t a2, unsigned int a3)
#define TD_ARGS_cuStreamWaitValue64_v2_ptsz (stream, a1, a2, a3)
#define TD_WORK_cuStreamWaitValue64_v2_ptsz (NULL, 0, 0, 0)
#define TD_SPANS_cuStreamWaitValue64_v2_ptsz false
#define TD_PARAMS_cuStreamWriteValue32 (CUstream stream, CUdeviceptr a1, uint32_t a2, unsigned int a3)
#define TD_ARGS_cuStreamWriteValue32 (stream, a1, a2, a3)
#define TD_WORK_cuStreamWriteValue32 (NULL, 0, 0, 0)
#define TD_SPANS_cuStreamWriteValue32 false
#define TD_PARAMS_cuStreamWriteValue32_ptsz (CUstream stream, CUdeviceptr a1, uint32_t a2, unsigned int a3)
#define TD_ARGS_cuStreamWriteValue32_ptsz (stream, a1, a2, a3)
#define TD_WORK_cuStreamWriteValue32_ptsz (NULL, 0, 0, 0)
#define TD_SPANS_cuStreamWriteValue32_ptsz false
#define TD_PARAMS_cuStreamWriteValue32_v2 (CUstream stream, CUdeviceptr a1, uint32_t a2, unsigned int a3)
#define TD_ARGS_cuStreamWriteValue32_v2 (stream, a1, a2, a3)
#define TD_WORK_cuStreamWriteValue32_v2 (NULL, 0, 0, 0)
#define TD_SPANS_cuStreamWriteValue32_v2 false
#define TD_PARAMS_cuStreamWriteValue32_v2_ptsz (CUstream stream, CUdeviceptr a1, uint32_t a2, unsigned int a3)
#define TD_ARGS_cuStreamWriteValue32_v2_ptsz (stream, a1, a2, a3)
#define TD_WORK_cuStreamWriteValue32_v2_ptsz (NULL, 0, 0, 0)
#define TD_SPANS_cuStreamWriteValue32_v2_ptsz false
#define TD_PARAMS_cuStreamWriteValue64 (CUstream stream, CUdeviceptr a1, uint64_t a2, unsigned int a3)
#define TD_ARGS_cuStreamWriteValue64 (stream, a1, a2, a3)
#define TD_WORK_cuStreamWriteValue64 (NULL, 0, 0, 0)
#define TD_SPANS_cuStreamWriteValue64 false
#define TD_PARAMS_cuStreamWriteValue64_ptsz (CUstream stream, CUdeviceptr a1, uint64_t a2, unsigned int a3)
#define TD_ARGS_cuStreamWriteValue64_ptsz (stream, a1, a2, a3)
#define TD_WORK_cuStreamWriteValue64_ptsz (NULL, 0, 0, 0)
#define TD_SPANS_cuStreamWriteValue64_ptsz false
#define TD_PARAMS_cuStreamWriteValue64_v2 (CUstream stream, CUdeviceptr a1, uint64_t a2, unsigned int a3)
#define TD_ARGS_cuStreamWriteValue64_v2 (stream, a1, a2, a3)
#define TD_WORK_cuStreamWriteValue64_v2 (NULL, 0, 0, 0)
#define TD_SPANS_cuStreamWriteValue64_v2 false
#define TD_PARAMS_cuStreamWriteValue64_v2_ptsz (CUstream stream, CUdeviceptr a1, uint64_t a2, unsigned int a3)
#define TD_ARGS_cuStreamWriteValue64_v2_ptsz (stream, a1, a2, a3)
#define TD_WORK_cuStreamWriteValue64_v2_ptsz (NULL, 0, 0, 0)
#define TD_SPANS_cuStreamWriteValue64_v2_ptsz false
#define TD_PARAMS_cuSurfObjectCreate (unsigned long long *a0, const void *a1)
#define TD_ARGS_cuSurfObjectCreate (a0, a1)
#define TD_WORK_cuSurfObjectCreate (NULL, 0, 0, 0)
#define TD_SPANS_cuSurfObjectCreate false
#define TD_PARAMS_cuSurfObjectDestroy (unsigned long long a0)
#define TD_ARGS_cuSurfObjectDestroy (a0)
#define TD_WORK_cuSurfObjectDestroy (NULL, 0, 0, 0)
#define TD_SPANS_cuSurfObjectDestroy false
#define TD_PARAMS_cuSurfObjectGetResourceDesc (void *a0, unsigned long long a1)
#define TD_ARGS_cuSurfObjectGetResourceDesc (a0, a1)
#define TD_WORK_cuSurfObjectGetResourceDesc (NULL, 0, 0, 0)
#define TD_SPANS_cuSurfObjectGetResourceDesc false
#define TD_PARAMS_cuSurfRefGetArray (void **a0, void *a1)
#define TD_ARGS_cuSurfRefGetArray (a0, a1)
#define TD_WORK_cuSurfRefGetArray (NULL, 0, 0, 0)
#define TD_SPANS_cuSurfRefGetArray false
#define TD_PARAMS_cuSurfRefSetArray (void *a0, void *a1, unsigned int a2)
#define TD_ARGS_cuSurfRefSetArray (a0, a1, a2)
#define TD_WORK_cuSurfRefSetArray (NULL, 0, 0, 0)
#define TD_SPANS_cuSurfRefSetArray false
#define TD_PARAMS_cuTensorMapEncodeIm2col (void *a0, int a1, uint32_t a2, void *a3, const uint64_t *a4, const uint64_t *a5, const int *a6, const int *a7, uint32_t a8, uint32_t a9, const uint32_t *a10, int a11, int a12, int a13, int a14)
#define TD_ARGS_cuTensorMapEncodeIm2col (a0, a1, a2, a3, a4, a5, a6, a7, a8, a9, a10, a11, a12, a13, a14)
#define TD_WORK_cuTensorMapEncodeIm2col (NULL, 0, 0, 0)
#define TD_SPANS_cuTensorMapEncodeIm2col false
#define TD_PARAMS_cuTensorMapEncodeIm2colWide (void *a0, int a1, uint32_t a2, void *a3, const uint64_t *a4, const uint64_t *a5, int a6, int a7, uint32_t a8, uint32_t a9, const uint32_t *a10, int a11, int a12, int a13, int a14, int a15)
#define TD_ARGS_cuTensorMapEncodeIm2colWide (a0, a1, a2, a3, a4, a5, a6, a7, a8, a9, a10, a11, a12, a13, a14, a15)
#define TD_WORK_cuTensorMapEncodeIm2colWide (NULL, 0, 0, 0)
#define TD_SPANS_cuTensorMapEncodeIm2colWide false
#define TD_PARAMS_cuTensorMapEncodeTiled (void *a0, int a1, uint32_t a2, void *a3, const uint64_t *a4, const uint64_t *a5, const uint32_t *a6, const uint32_t *a7, int a8, int a9, int a10, int a11)
#define TD_ARGS_cuTensorMapEncodeTiled (a0, a1, a2, a3, a4, a5, a6, a7, a8, a9, a10, a11)
#define TD_WORK_cuTensorMapEncodeTiled (NULL, 0, 0, 0)
#define TD_SPANS_cuTensorMapEncodeTiled false
#define TD_PARAMS_cuTensorMapReplaceAddress (void *a0, void *a1)
#define TD_ARGS_cuTensorMapReplaceAddress (a0, a1)
#define TD_WORK_cuTensorMapReplaceAddress (NULL, 0, 0, 0)
#define TD_SPANS_cuTensorMapReplaceAddress false
#define TD_PARAMS_cuTexObjectCreate (unsigned long long *a0, const void *a1, const void *a2, const void *a3)
#define TD_ARGS_cuTexObjectCreate (a0, a1, a2, a3)
#define TD_WORK_cuTexObjectCreate (NULL, 0, 0, 0)
#define TD_SPANS_cuTexObjectCreate false
#define TD_PARAMS_cuTexObjectDestroy (unsigned long long a0)
#define TD_ARGS_cuTexObjectDestroy (a0)
#define TD_WORK_cuTexObjectDestroy (NULL, 0, 0, 0)
#define TD_SPANS_cuTexObjectDestroy false
#define TD_PARAMS_cuTexObjectGetResourceDesc (void *a0, unsigned long long a1)
#define TD_ARGS_cuTexObjectGetResourceDesc (a0, a1)
#define TD_WORK_cuTexObjectGetResourceDesc (NULL, 0, 0, 0)
#define TD_SPANS_cuTexObjectGetResourceDesc false
#define TD_PARAMS_cuTexObjectGetResourceViewDesc (void *a0, unsigned long long a1)
#define TD_ARGS_cuTexObjectGetResourceViewDesc (a0, a1)
#define TD_WORK_cuTexObjectGetResourceViewDesc (NULL, 0, 0, 0)
#define TD_SPANS_cuTexObjectGetResourceViewDesc false
#define TD_PARAMS_cuTexObjectGetTextureDesc (void *a0, unsigned long long a1)
#define TD_ARGS_cuTexObjectGetTextureDesc (a0, a1)
#define TD_WORK_cuTexObjectGetTextureDesc (NULL, 0, 0, 0)
#define TD_SPANS_cuTexObjectGetTextureDesc false
#define TD_PARAMS_cuTexRefCreate (void **a0)
#define TD_ARGS_cuTexRefCreate (a0)
#define TD_WORK_cuTexRefCreate (NULL, 0, 0, 0)
#define TD_SPANS_cuTexRefCreate false
#define TD_PARAMS_cuTexRefDestroy (void *a0)
#define TD_ARGS_cuTexRefDestroy (a0)
#define TD_WORK_cuTexRefDestroy (NULL, 0, 0, 0)
#define TD_SPANS_cuTexRefDestroy false
#define TD_PARAMS_cuTexRefGetAddress (unsigned int *a0, void *a1)
#define TD_ARGS_cuTexRefGetAddress (a0, a1)
#define TD_WORK_cuTexRefGetAddress (NULL, 0, 0, 0)
#define TD_SPANS_cuTexRefGetAddress false
#define TD_PARAMS_cuTexRefGetAddress_v2 (CUdeviceptr *a0, void *a1)
#define TD_ARGS_cuTexRefGetAddress_v2 (a0, a1)
#define TD_WORK_cuTexRefGetAddress_v2 (NULL, 0, 0, 0)
#define TD_SPANS_cuTexRefGetAddress_v2 false
#define TD_PARAMS_cuTexRefGetAddressMode (int *a0, void *a1, int a2)
#define TD_ARGS_cuTexRefGetAddressMode (a0, a1, a2)
#define TD_WORK_cuTexRefGetAddressMode (NULL, 0, 0, 0)
#define TD_SPANS_cuTexRefGetAddressMode false
#define TD_PARAMS_cuTexRefGetArray (void **a0, void *a1)
#define TD_ARGS_cuTexRefGetArray (a0, a1)
#define TD_WORK_cuTexRefGetArray (NULL, 0, 0, 0)
#define TD_SPANS_cuTexRefGetArray false
#define TD_PARAMS_cuTexRefGetBorderColor (float *a0, void *a1)
#define TD_ARGS_cuTexRefGetBorderColor (a0, a1)
#define TD_WORK_cuTexRefGetBorderColor (NULL, 0, 0, 0)
#define TD_SPANS_cuTexRefGetBorderColor false
#define TD_PARAMS_cuTexRefGetFilterMode (int *a0, void *a1)
#define TD_ARGS_cuTexRefGetFilterMode (a0, a1)
#define TD_WORK_cuTexRefGetFilterMode (NULL, 0, 0, 0)
#define TD_SPANS_cuTexRefGetFilterMode false
#define TD_PARAMS_cuTexRefGetFlags (unsigned int *a0, void *a1)
#define TD_ARGS_cuTexRefGetFlags (a0, a1)
#define TD_WORK_cuTexRefGetFlags (NULL, 0, 0, 0)
#define TD_SPANS_cuTexRefGetFlags false
#define TD_PARAMS_cuTexRefGetFormat (int *a0, int *a1, void *a2)
#define TD_ARGS_cuTexRefGetFormat (a0, a1, a2)
#define TD_WORK_cuTexRefGetFormat (NULL, 0, 0, 0)
#define TD_SPANS_cuTexRefGetFormat false
#define TD_PARAMS_cuTexRefGetMaxAnisotropy (int *a0, void *a1)
#define TD_ARGS_cuTexRefGetMaxAnisotropy (a0, a1)
#define TD_WORK_cuTexRefGetMaxAnisotropy (NULL, 0, 0, 0)
#define TD_SPANS_cuTexRefGetMaxAnisotropy false
#define TD_PARAMS_cuTexRefGetMipmapFilterMode (int *a0, void *a1)
#define TD_ARGS_cuTexRefGetMipmapFilterMode (a0, a1)
#define TD_WORK_cuTexRefGetMipmapFilterMode (NULL, 0, 0, 0)
#define TD_SPANS_cuTexRefGetMipmapFilterMode false
#define TD_PARAMS_cuTexRefGetMipmapLevelBias (float *a0, void *a1)
#define TD_ARGS_cuTexRefGetMipmapLevelBias (a0, a1)
#define TD_WORK_cuTexRefGetMipmapLevelBias (NULL, 0, 0, 0)
#define TD_SPANS_cuTexRefGetMipmapLevelBias false
#define TD_PARAMS_cuTexRefGetMipmapLevelClamp (float *a0, float *a1, void *a2)
#define TD_ARGS_cuTexRefGetMipmapLevelClamp (a0, a1, a2)
#define TD_WORK_cuTexRefGetMipmapLevelClamp (NULL, 0, 0, 0)
#define TD_SPANS_cuTexRefGetMipmapLevelClamp false
#define TD_PARAMS_cuTexRefGetMipmappedArray (void **a0, void *a1)
#define TD_ARGS_cuTexRefGetMipmappedArray (a0, a1)
#define TD_WORK_cuTexRefGetMipmappedArray (NULL, 0, 0, 0)
#define TD_SPANS_cuTexRefGetMipmappedArray false
#define TD_PARAMS_cuTexRefSetAddress (unsigned int *a0, void *a1, unsigned int a2, unsigned int a3)
#define TD_ARGS_cuTexRefSetAddress (a0, a1, a2, a3)
#define TD_WORK_cuTexRefSetAddress (NULL, 0, 0, 0)
#define TD_SPANS_cuTexRefSetAddress false
#define TD_PARAMS_cuTexRefSetAddress_v2 (size_t *a0, void *a1, CUdeviceptr a2, size_t a3)
#define TD_ARGS_cuTexRefSetAddress_v2 (a0, a1, a2, a3)
#define TD_WORK_cuTexRefSetAddress_v2 (NULL, 0, 0, 0)
#define TD_SPANS_cuTexRefSetAddress_v2 false
#define TD_PARAMS_cuTexRefSetAddress2D (void *a0, const void *a1, unsigned int a2, unsigned int a3)
#define TD_ARGS_cuTexRefSetAddress2D (a0, a1, a2, a3)
#define TD_WORK_cuTexRefSetAddress2D (NULL, 0, 0, 0)
#define TD_SPANS_cuTexRefSetAddress2D false
#define TD_PARAMS_cuTexRefSetAddress2D_v2 (void *a0, const void *a1, CUdeviceptr a2, size_t a3)
#define TD_ARGS_cuTexRefSetAddress2D_v2 (a0, a1, a2, a3)
#define TD_WORK_cuTexRefSetAddress2D_v2 (NULL, 0, 0, 0)
#define TD_SPANS_cuTexRefSetAddress2D_v2 false
#define TD_PARAMS_cuTexRefSetAddress2D_v3 (void *a0, const void *a1, CUdeviceptr a2, size_t a3)
#define TD_ARGS_cuTexRefSetAddress2D_v3 (a0, a1, a2, a3)
#define TD_WORK_cuTexRefSetAddress2D_v3 (NULL, 0, 0, 0)
#define TD_SPANS_cuTexRefSetAddress2D_v3 false
#define TD_PARAMS_cuTexRefSetAddressMode (void *a0, int a1, int a2)
#define TD_ARGS_cuTexRefSetAddressMode (a0, a1, a2)
#define TD_WORK_cuTexRefSetAddressMode (NULL, 0, 0, 0)
#define TD_SPANS_cuTexRefSetAddressMode false
#define TD_PARAMS_cuTexRefSetArray (void *a0, void *a1, unsigned int a2)
#define TD_ARGS_cuTexRefSetArray (a0, a1, a2)
#define TD_WORK_cuTexRefSetArray (NULL, 0, 0, 0)
#define TD_SPANS_cuTexRefSetArray false
#define TD_PARAMS_cuTexRefSetBorderColor (void *a0, float *a1)
#define TD_ARGS_cuTexRefSetBorderColor (a0, a1)
#define TD_WORK_cuTexRefSetBorderColor (NULL, 0, 0, 0)
#define TD_SPANS_cuTexRefSetBorderColor false
#define TD_PARAMS_cuTexRefSetFilterMode (void *a0, int a1)
#define TD_ARGS_cuTexRefSetFilterMode (a0, a1)
#define TD_WORK_cuTexRefSetFilterMode (NULL, 0, 0, 0)
#define TD_SPANS_cuTexRefSetFilterMode false
#define TD_PARAMS_cuTexRefSetFlags (void *a0, unsigned int a1)
#define TD_ARGS_cuTexRefSetFlags (a0, a1)
#define TD_WORK_cuTexRefSetFlags (NULL, 0, 0, 0)
#define TD_SPANS_cuTexRefSetFlags false
#define TD_PARAMS_cuTexRefSetFormat (void *a0, int a1, int a2)
#define TD_ARGS_cuTexRefSetFormat (a0, a1, a2)
#define TD_WORK_cuTexRefSetFormat (NULL, 0, 0, 0)
#define TD_SPANS_cuTexRefSetFormat false
#define TD_PARAMS_cuTexRefSetMaxAnisotropy (void *a0, unsigned int a1)
#define TD_ARGS_cuTexRefSetMaxAnisotropy (a0, a1)
#define TD_WORK_cuTexRefSetMaxAnisotropy (NULL, 0, 0, 0)
#define TD_SPANS_cuTexRefSetMaxAnisotropy false
#define TD_PARAMS_cuTexRefSetMipmapFilterMode (void *a0, int a1)
#define TD_ARGS_cuTexRefSetMipmapFilterMode (a0, a1)
#define TD_WORK_cuTexRefSetMipmapFilterMode (NULL, 0, 0, 0)
#define TD_SPANS_cuTexRefSetMipmapFilterMode false
#define TD_PARAMS_cuTexRefSetMipmapLevelBias (void *a0, float a1)
#define TD_ARGS_cuTexRefSetMipmapLevelBias (a0, a1)
#define TD_WORK_cuTexRefSetMipmapLevelBias (NULL, 0, 0, 0)
#define TD_SPANS_cuTexRefSetMipmapLevelBias false
#define TD_PARAMS_cuTexRefSetMipmapLevelClamp (void *a0, float a1, float a2)
#define TD_ARGS_cuTexRefSetMipmapLevelClamp (a0, a1, a2)
#define TD_WORK_cuTexRefSetMipmapLevelClamp (NULL, 0, 0, 0)
#define TD_SPANS_cuTexRefSetMipmapLevelClamp false
#define TD_PARAMS_cuTexRefSetMipmappedArray (void *a0, void *a1, unsigned int a2)
#define TD_ARGS_cuTexRefSetMipmappedArray (a0, a1, a2)
#define TD_WORK_cuTexRefSetMipmappedArray (NULL, 0, 0, 0)
#define TD_SPANS_cuTexRefSetMipmappedArray false
#define TD_PARAMS_cuThreadExchangeStreamCaptureMode (int *a0)
#define TD_ARGS_cuThreadExchangeStreamCaptureMode (a0)
#define TD_WORK_cuThreadExchangeStreamCaptureMode (NULL, 0, 0, 0)
#define TD_SPANS_cuThreadExchangeStreamCaptureMode false
#define TD_PARAMS_cuUserObjectCreate (void **a0, void *a1, CUhostFn a2, unsigned int a3, unsigned int a4)
#define TD_ARGS_cuUserObjectCreate (a0, a1, a2, a3, a4)
#define TD_WORK_cuUserObjectCreate (NULL, 0, 0, 0)
#define TD_SPANS_cuUserObjectCreate false
#define TD_PARAMS_cuUserObjectRelease (void *a0, unsigned int a1)
#define TD_ARGS_cuUserObjectRelease (a0, a1)
#define TD_WORK_cuUserObjectRelease (NULL, 0, 0, 0)
#define TD_SPANS_cuUserObjectRelease false
#define TD_PARAMS_cuUserObjectRetain (void *a0, unsigned int a1)
#define TD_ARGS_cuUserObjectRetain (a0, a1)
#define TD_WORK_cuUserObjectRetain (NULL, 0, 0, 0)
#define TD_SPANS_cuUserObjectRetain false
#define TD_PARAMS_cuWaitExternalSemaphoresAsync (const void **a0, const void *a1, unsigned int a2, CUstream stream)
#define TD_ARGS_cuWaitExternalSemaphoresAsync (a0, a1, a2, stream)
#define TD_WORK_cuWaitExternalSemaphoresAsync (NULL, 0, 0, 0)
#define TD_SPANS_cuWaitExternalSemaphoresAsync false
#define TD_PARAMS_cuWaitExternalSemaphoresAsync_ptsz (const void **a0, const void *a1, unsigned int a2, CUstream stream)
#define TD_ARGS_cuWaitExternalSemaphoresAsync_ptsz (a0, a1, a2, stream)
#define TD_WORK_cuWaitExternalSemaphoresAsync_ptsz (NULL, 0, 0, 0)
#define TD_SPANS_cuWaitExternalSemaphoresAsync_ptsz false
