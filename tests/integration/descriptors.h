/* File descriptors over a socket. */
#pragma once

#include <string.h>
#include <sys/socket.h>

union descriptor_room {
	struct cmsghdr header;
	char bytes[CMSG_SPACE(sizeof(int))];
};

/* 0, or -1. */
static inline int send_file(int socket, int file)
{
	union descriptor_room room = {0};
	char text = 'f';
	struct iovec byte = {&text, 1};
	struct msghdr message = {.msg_iov = &byte,
		.msg_iovlen = 1,
		.msg_control = &room,
		.msg_controllen = sizeof(room)};

	room.header.cmsg_level = SOL_SOCKET;
	room.header.cmsg_type = SCM_RIGHTS;
	room.header.cmsg_len = CMSG_LEN(sizeof(file));
	memcpy(CMSG_DATA(&room.header), &file, sizeof(file));
	return sendmsg(socket, &message, MSG_NOSIGNAL) == 1 ? 0 : -1;
}

/* Below 0: none has come. */
static inline int receive_file(int socket)
{
	union descriptor_room room = {0};
	char text;
	struct iovec byte = {&text, 1};
	struct msghdr message = {.msg_iov = &byte,
		.msg_iovlen = 1,
		.msg_control = &room,
		.msg_controllen = sizeof(room)};
	int file = -1;

	if (recvmsg(socket, &message, MSG_CMSG_CLOEXEC) == 1 && message.msg_controllen)
		memcpy(&file, CMSG_DATA(&room.header), sizeof(file));
	return file;
}
