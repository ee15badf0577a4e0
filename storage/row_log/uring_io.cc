// io_uring.
//   Source  Axboe, "Efficient IO with io_uring", 2019; io_uring_setup(2) of liburing 2.3.
//
// With DEFER_TASKRUN (Linux 6.1) the end of a request is handled when this thread asks for it, and
// not in an interrupt of whatever it is doing; the eventfd is signalled once until then, however
// many requests end. Older kernels get what they know.
#include <liburing.h>
#include <sys/eventfd.h>

#include <array>
#include <bit>
#include <cerrno>
#include <cstring>

#include "core/base/error.h"
#include "storage/row_log/file_io.h"

namespace cairn::storage {
namespace {

class UringIo final : public FileIo {
 public:
  explicit UringIo(int eventfd) : eventfd_(eventfd) {}
  ~UringIo() override {
    if (open_) io_uring_queue_exit(&ring_);
  }
  UringIo(const UringIo&) = delete;
  UringIo& operator=(const UringIo&) = delete;

  bool open(std::size_t under_way_max) {
    const auto entries = static_cast<unsigned>(std::bit_ceil(under_way_max));
    constexpr std::array<unsigned, 3> kFlags = {
        IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_DEFER_TASKRUN, IORING_SETUP_COOP_TASKRUN, 0};
    for (const unsigned flags : kFlags) {
      io_uring_params parameters = {};
      parameters.flags = flags;
      if (io_uring_queue_init_params(entries, &ring_, &parameters) != 0) continue;
      open_ = true;
      deferred_ = (flags & IORING_SETUP_DEFER_TASKRUN) != 0;
      return knows_reads() && io_uring_register_eventfd(&ring_, eventfd_) == 0;
    }
    return false;
  }

  void begin(std::span<const FileRequest> requests) override {
    for (const FileRequest& request : requests) {
      io_uring_sqe* entry = io_uring_get_sqe(&ring_);
      CAIRN_CHECK(entry != nullptr, "more requests than the ring was made for");
      const auto bytes = static_cast<unsigned>(request.bytes);
      if (request.access == FileAccess::kRead)
        io_uring_prep_read(entry, request.descriptor, request.data, bytes, request.offset);
      else
        io_uring_prep_write(entry, request.descriptor, request.data, bytes, request.offset);
      io_uring_sqe_set_data64(entry, request.tag);
    }
    submit();
  }

  void take(std::vector<FileResult>& results) override {
    if (io_uring_sq_ready(&ring_) > 0) submit();
    if (deferred_) io_uring_get_events(&ring_);
    std::array<io_uring_cqe*, 64> ended;
    while (const unsigned count = io_uring_peek_batch_cqe(&ring_, ended.data(), ended.size())) {
      for (unsigned i = 0; i < count; ++i)
        results.push_back({io_uring_cqe_get_data64(ended[i]), ended[i]->res});
      io_uring_cq_advance(&ring_, count);
    }
  }

  std::string_view name() const override { return "io_uring"; }

 private:
  // Linux 5.6 and newer.
  bool knows_reads() {
    io_uring_probe* probe = io_uring_get_probe_ring(&ring_);
    const bool known = probe != nullptr && io_uring_opcode_supported(probe, IORING_OP_READ) != 0 &&
                       io_uring_opcode_supported(probe, IORING_OP_WRITE) != 0;
    if (probe != nullptr) io_uring_free_probe(probe);
    return known;
  }
  // Requests that the kernel does not take now, being short of memory, stay in the ring; the
  // eventfd sees to it that take() comes and tries again.
  void submit() {
    const int submitted = io_uring_submit(&ring_);
    const bool again = submitted == -EAGAIN || submitted == -EBUSY || submitted == -EINTR;
    CAIRN_CHECK(submitted >= 0 || again, "io_uring_submit: ", std::strerror(-submitted));
    if (io_uring_sq_ready(&ring_) > 0) ::eventfd_write(eventfd_, 1);
  }

  int eventfd_;
  io_uring ring_ = {};
  bool open_ = false, deferred_ = false;
};

}  // namespace

std::unique_ptr<FileIo> make_uring_io(std::size_t under_way_max, int eventfd) {
  auto io = std::make_unique<UringIo>(eventfd);
  if (!io->open(under_way_max)) return nullptr;
  return io;
}

}  // namespace cairn::storage
