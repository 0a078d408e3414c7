/*
 * How a program finds the MPS control daemon and sends it a command: by a socket in the pipe
 * directory.
 *
 * The directory is $CUDA_MPS_PIPE_DIRECTORY, or else /tmp/nvidia-mps, as with NVIDIA's MPS. The
 * protocol is softgpu's own: one packet with a line of text, a command or SG_MPS_CONNECT; and one
 * packet as the answer, with '+' (or '-' if it is refused) and a text.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#define SG_MPS_PIPE_ENV     "CUDA_MPS_PIPE_DIRECTORY"
#define SG_MPS_PIPE_DEFAULT "/tmp/nvidia-mps"
#define SG_MPS_ANSWER_MAX   16384
/*
 * A program asks for its server. The answer is "PID DIRECTORY", the directory of the softgpu whose
 * GPUs it serves. If it is refused, the text is a CUresult.
 */
#define SG_MPS_CONNECT "connect"
#define SG_MPS_PIDFILE "nvidia-cuda-mps-control.pid"

#define SG_MPS_LIMIT_ENV "CUDA_MPS_PINNED_DEVICE_MEM_LIMIT"
#define SG_MPS_GPUS_MAX  64

/*
 * Reads "0=1G,1=512M": bytes by the number of a GPU, into limits[SG_MPS_GPUS_MAX], 0 where there is
 * none. Returns 0, or -EINVAL with no limit at all.
 */
int sg_mps_parse_limits(const char *text, uint64_t *limits);

/* Writes the pipe directory to buf. 0 or -ENAMETOOLONG. */
int sg_mps_pipe_directory(char *buf, size_t len);
/* The path of the socket in that directory. 0 or -ENAMETOOLONG: sockets' paths are short. */
int sg_mps_pipe_socket(const char *directory, char *buf, size_t len);
/*
 * Asks the daemon of that directory. Returns 0 with the answer's text, 1 with that of a refusal,
 * -ENOENT or -ECONNREFUSED if there is no daemon, or another error.
 */
int sg_mps_pipe_ask(const char *directory, const char *question, char *answer, size_t len);
