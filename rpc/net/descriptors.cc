#include "rpc/net/descriptors.h"

#include <sys/socket.h>
#include <sys/uio.h>

#include <cstring>

namespace cairn::rpc {

// On a stream socket the descriptor belongs to the first byte of the data: it comes with the read
// that takes that byte (unix(7)). MSG_NOSIGNAL: a peer that has gone is an error, not a SIGPIPE.
bool send_with_descriptor(int socket, std::span<const std::uint8_t> bytes, int descriptor) {
  iovec piece{const_cast<std::uint8_t*>(bytes.data()), bytes.size()};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
  msghdr message{};
  message.msg_iov = &piece;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof control;
  cmsghdr* header = CMSG_FIRSTHDR(&message);
  header->cmsg_level = SOL_SOCKET;
  header->cmsg_type = SCM_RIGHTS;
  header->cmsg_len = CMSG_LEN(sizeof(int));
  std::memcpy(CMSG_DATA(header), &descriptor, sizeof descriptor);
  return ::sendmsg(socket, &message, MSG_NOSIGNAL) == static_cast<ssize_t>(bytes.size());
}

ssize_t receive_with_descriptors(int socket, void* to, std::size_t bytes,
                                 const std::function<void(int descriptor)>& take) {
  iovec piece{to, bytes};
  // A peer may send more descriptors than we expect: those that find no room here are closed by the
  // system.
  alignas(cmsghdr) char control[CMSG_SPACE(4 * sizeof(int))];
  msghdr message{};
  message.msg_iov = &piece;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof control;
  // Close-on-exec from the beginning: another thread may start a program at any time, which must
  // not inherit the descriptor.
  const ssize_t got = ::recvmsg(socket, &message, MSG_CMSG_CLOEXEC);
  if (got < 0) return got;
  for (cmsghdr* header = CMSG_FIRSTHDR(&message); header != nullptr;
       header = CMSG_NXTHDR(&message, header)) {
    if (header->cmsg_level != SOL_SOCKET || header->cmsg_type != SCM_RIGHTS) continue;
    for (std::size_t at = 0; CMSG_LEN(at + sizeof(int)) <= header->cmsg_len; at += sizeof(int)) {
      int descriptor = -1;
      // CMSG_DATA need not be aligned for an int (cmsg(3)).
      std::memcpy(&descriptor, CMSG_DATA(header) + at, sizeof descriptor);
      take(descriptor);
    }
  }
  return got;
}

}  // namespace cairn::rpc
