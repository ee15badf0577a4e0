#include "ps/server/cold_disk.h"

#include "core/base/log.h"
#include "core/rows/cold_index.h"
#include "storage/row_log/memory_cold_store.h"
#include "storage/row_log/row_log_store.h"

namespace cairn::ps {
namespace {

// Lanes of a simulated disk: what goes by different ones may end in any order.
constexpr std::size_t kFirstLane = 1000, kLanes = 7;
constexpr std::size_t kMovesAfter = 5;  // in a simulation: a move for so many rows that go

}  // namespace

ColdDisk::ColdDisk(rpc::Reactor& reactor, Offload& offload, std::string folder)
    : reactor_(reactor), offload_(offload), folder_(std::move(folder)) {}

ColdDisk::~ColdDisk() = default;

storage::MakeColdStore ColdDisk::make_store() {
  return [self = shared_from_this()](const std::string& name, std::size_t row_bytes,
                                     storage::Moved moved) {
    return self->make(name, row_bytes, std::move(moved));
  };
}

storage::IoQueue& ColdDisk::io() {
  if (io_ != nullptr) return *io_;
  io_ = std::make_unique<storage::IoQueue>(storage::IoQueueOptions{});
  rpc::on_readable(reactor_, io_->descriptor(), [weak = weak_from_this()] {
    const auto self = weak.lock();
    if (self == nullptr) return;
    self->io_->poll();
    if (self->went_on) self->went_on();
  });
  return *io_;
}

std::unique_ptr<storage::ColdStore> ColdDisk::make(const std::string& name, std::size_t row_bytes,
                                                   storage::Moved moved) {
  if (reactor_.simulated()) {
    storage::MemoryColdStoreOptions options{.row_bytes = row_bytes, .moves_after = kMovesAfter};
    options.later = [weak = weak_from_this()](std::function<void()> work) {
      const auto self = weak.lock();
      if (self == nullptr) return;
      self->offload_.submit(kFirstLane + self->later_++ % kLanes, [weak, work = std::move(work)] {
        const auto still = weak.lock();
        if (still == nullptr) return;
        work();
        if (still->went_on) still->went_on();
      });
    };
    return std::make_unique<storage::MemoryColdStore>(std::move(options), std::move(moved));
  }
  const std::string folder = str(folder_, "/", stores_++);
  const auto layout = storage::RecordLayout::of(row_bytes, 1 << 20, 32 << 20);
  storage::RowLogOptions options{.folder = folder, .row_bytes = row_bytes};
  options.max_bytes = ColdIndex::kPlacesMax / layout.records_per_segment * layout.segment_bytes;
  log_info(name, ": rows that do not fit in memory lie in ", folder);
  return storage::make_row_log_store(io(), options, std::move(moved));
}

}  // namespace cairn::ps
