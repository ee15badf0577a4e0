#include "rpc/net/shared_memory.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <bit>
#include <map>
#include <vector>

#include "core/base/error.h"
#include "rpc/loop/memory_use.h"

namespace cairn::rpc {
namespace {

constexpr std::size_t kSmallestShared = 4 << 10;
std::atomic<std::size_t> bytes_handed_out{0};
constexpr int kSeals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;

// The size of what can be relied upon, else 0. Ordinary pages: those of hugetlbfs may be missing
// when touched, which ends the process.
std::size_t trusted_bytes(int descriptor, std::size_t bytes_max) {
  struct statfs system {};
  struct stat file {};
  const int seals = ::fcntl(descriptor, F_GET_SEALS);
  if (seals < 0 || (seals & F_SEAL_SHRINK) == 0 || ::fstatfs(descriptor, &system) != 0 ||
      system.f_type != TMPFS_MAGIC || ::fstat(descriptor, &file) != 0)
    return 0;
  const auto bytes = static_cast<std::size_t>(file.st_size);
  return bytes <= bytes_max ? bytes : 0;
}

// Four to each doubling: a bound of memory shared by all sizes suffers no more than a quarter of
// waste.
std::size_t size_class(std::size_t bytes) {
  const std::size_t wanted = std::max(bytes, kSmallestShared);
  const std::size_t step = std::max(std::bit_ceil(wanted) / 8, kSmallestShared);
  return (wanted + step - 1) / step * step;
}

}  // namespace

std::size_t shared_bytes() { return bytes_handed_out.load(std::memory_order_relaxed); }

// Maps without a reservation: the file is large, and pages that are not touched cost nothing.
std::shared_ptr<SharedMemory> SharedMemory::map(int descriptor, std::size_t bytes) {
  void* data =
      ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, descriptor, 0);
  if (data == MAP_FAILED) {
    ::close(descriptor);
    return nullptr;
  }
  ::madvise(data, bytes, MADV_HUGEPAGE);  // a wish
  return std::shared_ptr<SharedMemory>(
      new SharedMemory(descriptor, static_cast<std::byte*>(data), bytes));
}

// The size is set before the seals, which forbid to change it. F_SEAL_SEAL keeps the peer from
// adding others later.
std::shared_ptr<SharedMemory> SharedMemory::create(std::size_t bytes) {
  const int descriptor = ::memfd_create("cairn", MFD_CLOEXEC | MFD_ALLOW_SEALING);
  if (descriptor < 0) return nullptr;
  if (::ftruncate(descriptor, static_cast<off_t>(bytes)) == 0 &&
      ::fcntl(descriptor, F_ADD_SEALS, kSeals) == 0)
    return map(descriptor, bytes);
  ::close(descriptor);
  return nullptr;
}

std::shared_ptr<SharedMemory> SharedMemory::adopt(int descriptor, std::size_t bytes_max) {
  if (const std::size_t bytes = trusted_bytes(descriptor, bytes_max); bytes > 0)
    return map(descriptor, bytes);
  ::close(descriptor);
  return nullptr;
}

SharedMemory::~SharedMemory() {
  ::munmap(data_, bytes_);
  ::close(descriptor_);
}

std::span<std::byte> SharedMemory::at(std::uint64_t offset, std::uint64_t size) const {
  // Written so that no sum can overflow: both numbers come from another process.
  if (offset % 8 != 0 || offset > bytes_ || size > bytes_ - offset)
    throw InvalidArgumentError(str("a call names ", size, " bytes at ", offset,
                                   " of the shared memory, which has ", bytes_,
                                   "; places are multiples of 8"));
  return {data_ + offset, static_cast<std::size_t>(size)};
}

std::optional<std::uint64_t> SharedMemory::offset_of(const void* data, std::size_t size) const {
  const auto* from = static_cast<const std::byte*>(data);
  if (from < data_ || from > data_ + bytes_ ||
      size > static_cast<std::size_t>(data_ + bytes_ - from))
    return std::nullopt;
  return static_cast<std::uint64_t>(from - data_);
}

struct SharedPool::State {
  ~State() { bytes_handed_out.fetch_sub(used, std::memory_order_relaxed); }
  std::shared_ptr<SharedMemory> memory;
  RegisterMemory registers;
  std::vector<std::shared_ptr<void>> registered;  // goes before the memory
  std::size_t used = 0;                           // from the beginning: what was ever handed out
  std::map<std::size_t, std::vector<std::size_t>> unused;  // offsets by size class
};

SharedPool::SharedPool(std::shared_ptr<SharedMemory> memory, RegisterMemory registers)
    : state_(std::make_shared<State>()) {
  state_->memory = std::move(memory);
  state_->registers = std::move(registers);
}

const SharedMemory& SharedPool::memory() const { return *state_->memory; }

// Memory that was handed out once keeps its size class: new memory is cut off the end while there
// is some, and neighbours are never joined again.
std::shared_ptr<std::uint8_t> SharedPool::take(std::size_t bytes) {
  const std::size_t size = size_class(bytes);
  std::vector<std::size_t>& unused = state_->unused[size];
  std::size_t offset = state_->used;
  if (!unused.empty()) {
    offset = unused.back();
    unused.pop_back();
  } else if (size <= state_->memory->bytes() - state_->used) {
    state_->used += size;
    bytes_handed_out.fetch_add(size, std::memory_order_relaxed);
    if (state_->registers)
      state_->registered.push_back(state_->registers(state_->memory->data() + offset, size));
  } else {
    return nullptr;
  }
  auto* data = reinterpret_cast<std::uint8_t*>(state_->memory->data() + offset);
  return {data,
          [state = state_, offset, size](std::uint8_t*) { state->unused[size].push_back(offset); }};
}

}  // namespace cairn::rpc
