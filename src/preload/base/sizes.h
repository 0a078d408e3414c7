/*
 * The name of the parameter that holds the size, for each copy and memset function
 * (cuda/signatures.h). A comma precedes it, so that TD_SIZE() finds 0 where there is no row. A
 * copy's size is in bytes, a memset's in elements. Copies of rectangles and batches have their
 * sizes in structures, which are not read.
 */
#pragma once

#define TD_SIZE_SECOND(first, second, ...) second
#define TD_SIZE_EXPAND(...)                TD_SIZE_SECOND(__VA_ARGS__)
#define TD_SIZE(symbol)                    TD_SIZE_EXPAND(TD_SIZE_##symbol, 0, )

#define TD_SIZE_cuMemcpy                  , a2
#define TD_SIZE_cuMemcpy_ptds             , a2
#define TD_SIZE_cuMemcpyAsync             , a2
#define TD_SIZE_cuMemcpyAsync_ptsz        , a2
#define TD_SIZE_cuMemcpyAtoA              , a4
#define TD_SIZE_cuMemcpyAtoA_v2           , a4
#define TD_SIZE_cuMemcpyAtoA_v2_ptds      , a4
#define TD_SIZE_cuMemcpyAtoD              , a3
#define TD_SIZE_cuMemcpyAtoD_v2           , a3
#define TD_SIZE_cuMemcpyAtoD_v2_ptds      , a3
#define TD_SIZE_cuMemcpyAtoH              , a3
#define TD_SIZE_cuMemcpyAtoH_v2           , a3
#define TD_SIZE_cuMemcpyAtoH_v2_ptds      , a3
#define TD_SIZE_cuMemcpyAtoHAsync         , a3
#define TD_SIZE_cuMemcpyAtoHAsync_v2      , a3
#define TD_SIZE_cuMemcpyAtoHAsync_v2_ptsz , a3
#define TD_SIZE_cuMemcpyDtoA              , a3
#define TD_SIZE_cuMemcpyDtoA_v2           , a3
#define TD_SIZE_cuMemcpyDtoA_v2_ptds      , a3
#define TD_SIZE_cuMemcpyDtoD              , a2
#define TD_SIZE_cuMemcpyDtoD_v2           , a2
#define TD_SIZE_cuMemcpyDtoD_v2_ptds      , a2
#define TD_SIZE_cuMemcpyDtoDAsync         , a2
#define TD_SIZE_cuMemcpyDtoDAsync_v2      , a2
#define TD_SIZE_cuMemcpyDtoDAsync_v2_ptsz , a2
#define TD_SIZE_cuMemcpyDtoH              , a2
#define TD_SIZE_cuMemcpyDtoH_v2           , a2
#define TD_SIZE_cuMemcpyDtoH_v2_ptds      , a2
#define TD_SIZE_cuMemcpyDtoHAsync         , a2
#define TD_SIZE_cuMemcpyDtoHAsync_v2      , a2
#define TD_SIZE_cuMemcpyDtoHAsync_v2_ptsz , a2
#define TD_SIZE_cuMemcpyHtoA              , a3
#define TD_SIZE_cuMemcpyHtoA_v2           , a3
#define TD_SIZE_cuMemcpyHtoA_v2_ptds      , a3
#define TD_SIZE_cuMemcpyHtoAAsync         , a3
#define TD_SIZE_cuMemcpyHtoAAsync_v2      , a3
#define TD_SIZE_cuMemcpyHtoAAsync_v2_ptsz , a3
#define TD_SIZE_cuMemcpyHtoD              , a2
#define TD_SIZE_cuMemcpyHtoD_v2           , a2
#define TD_SIZE_cuMemcpyHtoD_v2_ptds      , a2
#define TD_SIZE_cuMemcpyHtoDAsync         , a2
#define TD_SIZE_cuMemcpyHtoDAsync_v2      , a2
#define TD_SIZE_cuMemcpyHtoDAsync_v2_ptsz , a2
#define TD_SIZE_cuMemcpyPeer              , a4
#define TD_SIZE_cuMemcpyPeer_ptds         , a4
#define TD_SIZE_cuMemcpyPeerAsync         , a4
#define TD_SIZE_cuMemcpyPeerAsync_ptsz    , a4
#define TD_SIZE_cuMemsetD16               , a2
#define TD_SIZE_cuMemsetD16_v2            , a2
#define TD_SIZE_cuMemsetD16_v2_ptds       , a2
#define TD_SIZE_cuMemsetD16Async          , a2
#define TD_SIZE_cuMemsetD16Async_ptsz     , a2
#define TD_SIZE_cuMemsetD2D16             , (unsigned long long)a3 *a4
#define TD_SIZE_cuMemsetD2D16_v2          , (unsigned long long)a3 *a4
#define TD_SIZE_cuMemsetD2D16_v2_ptds     , (unsigned long long)a3 *a4
#define TD_SIZE_cuMemsetD2D16Async        , (unsigned long long)a3 *a4
#define TD_SIZE_cuMemsetD2D16Async_ptsz   , (unsigned long long)a3 *a4
#define TD_SIZE_cuMemsetD2D32             , (unsigned long long)a3 *a4
#define TD_SIZE_cuMemsetD2D32_v2          , (unsigned long long)a3 *a4
#define TD_SIZE_cuMemsetD2D32_v2_ptds     , (unsigned long long)a3 *a4
#define TD_SIZE_cuMemsetD2D32Async        , (unsigned long long)a3 *a4
#define TD_SIZE_cuMemsetD2D32Async_ptsz   , (unsigned long long)a3 *a4
#define TD_SIZE_cuMemsetD2D8              , (unsigned long long)a3 *a4
#define TD_SIZE_cuMemsetD2D8_v2           , (unsigned long long)a3 *a4
#define TD_SIZE_cuMemsetD2D8_v2_ptds      , (unsigned long long)a3 *a4
#define TD_SIZE_cuMemsetD2D8Async         , (unsigned long long)a3 *a4
#define TD_SIZE_cuMemsetD2D8Async_ptsz    , (unsigned long long)a3 *a4
#define TD_SIZE_cuMemsetD32               , a2
#define TD_SIZE_cuMemsetD32_v2            , a2
#define TD_SIZE_cuMemsetD32_v2_ptds       , a2
#define TD_SIZE_cuMemsetD32Async          , a2
#define TD_SIZE_cuMemsetD32Async_ptsz     , a2
#define TD_SIZE_cuMemsetD8                , a2
#define TD_SIZE_cuMemsetD8_v2             , a2
#define TD_SIZE_cuMemsetD8_v2_ptds        , a2
#define TD_SIZE_cuMemsetD8Async           , a2
#define TD_SIZE_cuMemsetD8Async_ptsz      , a2
