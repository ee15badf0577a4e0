#include "service/dispatcher/journal.h"

#include <cstring>

#include "core/base/checksum.h"
#include "core/base/log.h"
#include "core/base/machine.h"
#include "rpc/loop/on_offload.h"

namespace cairn::service {
namespace {

constexpr const char* kDatasetPrefix = "dataset-";
// A dispatcher that was just killed may hold its lock for a moment.
constexpr Duration kLockPatience = std::chrono::seconds(5);

DataLossError damaged(const std::string& path, const std::string& why) {
  return DataLossError(
      str(path, " is damaged: ", why, "; remove the journal's folder, and begin the jobs anew"));
}

// One line with the checksum of the rest.
std::string sealed(const std::string& text) { return str(crc32c(text), "\n", text); }

}  // namespace

Journal::Journal(rpc::Reactor& reactor, Offload& offload, Disk& disk, std::string folder,
                 std::function<Json()> state)
    : reactor_(reactor),
      offload_(offload),
      disk_(disk),
      folder_(std::move(folder)),
      state_(std::move(state)) {
  if (folder_.empty()) return;
  disk_.make_folder(folder_);
  try {
    lock_ = disk_.lock(folder_ + "/LOCK", "a dispatcher of the data service", kLockPatience);
  } catch (const FailedPreconditionError& error) {
    throw FailedPreconditionError(str("the journal in ", folder_, " is in use by ", error.what(),
                                      ": end that dispatcher, or give --journal another folder"));
  }
}

Json Journal::load() const {
  if (folder_.empty() || !disk_.exists(path())) return nullptr;
  const std::string all = disk_.read(path());
  const std::size_t line = all.find('\n');
  if (line == std::string::npos || sealed(all.substr(line + 1)) != all)
    throw damaged(path(), "its checksum is wrong");
  return parse_json(std::string_view(all).substr(line + 1), path());
}

std::string Journal::path_of(std::uint64_t dataset) const {
  return str(folder_, "/", kDatasetPrefix, dataset);
}

std::vector<std::byte> Journal::load_dataset(std::uint64_t id) const {
  const std::string all = disk_.read(path_of(id));
  const auto* begin = reinterpret_cast<const std::byte*>(all.data());
  return {begin, begin + all.size()};
}

// The journal owns the task that writes, because a caller that waits may be dropped with its
// connection.
rpc::Task<void> Journal::commit() {
  if (folder_.empty()) co_return;
  const std::uint64_t wanted = ++asked_;
  if (!writing_) {
    writing_ = true;
    tasks_.spawn("writing the journal", write_all());
  }
  while (written_ < wanted && failed_ < wanted) co_await changed_.wait();
  if (written_ < wanted) throw_error(*error_);
}

rpc::Task<void> Journal::write_all() {
  while (written_ < asked_ && failed_ < asked_) {
    const std::uint64_t covers = asked_;
    // A turn of the loop first, so that what comes together is written together.
    co_await reactor_.yield();
    try {
      auto text = std::make_shared<std::string>(sealed(json_text(state_())));
      std::function<void()> work = [&disk = disk_, text, to = path()] {
        disk.write_atomically(to, *text);
      };
      auto done = rpc::on_offload(reactor_, offload_, 0, std::move(work));
      co_await kj::mv(done);
      written_ = covers;
    } catch (const CancelledError&) {
      throw;
    } catch (...) {
      error_ = error_parts(std::current_exception());
      failed_ = covers;
    }
    changed_.notify_all();
  }
  writing_ = false;
}

rpc::Task<void> Journal::keep_dataset(std::uint64_t id,
                                      std::shared_ptr<const std::vector<std::byte>> of) {
  if (folder_.empty()) co_return;
  std::function<void()> work = [&disk = disk_, of, to = path_of(id)] {
    disk.write_atomically(to, {reinterpret_cast<const char*>(of->data()), of->size()});
  };
  auto done = rpc::on_offload(reactor_, offload_, 0, std::move(work));
  co_await kj::mv(done);
}

void Journal::remove_unused(std::set<std::uint64_t> used) {
  if (folder_.empty()) return;
  std::set<std::string> names;
  for (const std::uint64_t id : used) names.insert(str(kDatasetPrefix, id));
  std::function<void()> work = [&disk = disk_, names = std::move(names), folder = folder_] {
    for (const std::string& name : disk.list(folder))
      if (name.starts_with(kDatasetPrefix) && !names.contains(name))
        disk.remove(folder + "/" + name);
  };
  tasks_.spawn("removing datasets that no job uses",
               rpc::on_offload(reactor_, offload_, 0, std::move(work)));
}

}  // namespace cairn::service
