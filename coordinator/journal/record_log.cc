#include "coordinator/journal/record_log.h"

#include <algorithm>
#include <cstring>
#include <optional>
#include <string_view>
#include <utility>

#include "core/base/checksum.h"
#include "core/base/error.h"
#include "core/base/failpoint.h"
#include "core/disk/appended_file.h"
#include "core/disk/disk.h"

namespace cairn {
namespace {

// In front of each record; in the machine's order of bytes, which is little-endian.
struct Head {
  std::uint32_t checksum = 0;  // of what follows, and of the record
  std::uint32_t bytes = 0;     // of the record, without what fills it up to a multiple of 8
  std::uint64_t synced = 0;    // so much of the file was synced when the record was written; of
                               // records that the file was made with: all of those
};
static_assert(sizeof(Head) == 16);

constexpr std::size_t kAlignment = 8;
// A record is at most so long: a length that damage has made is not believed.
constexpr std::size_t kRecordMax = (std::size_t{1} << 31) - 1;

std::size_t filled_up(std::size_t bytes) {
  return (bytes + kAlignment - 1) / kAlignment * kAlignment;
}

std::uint32_t checksum_of(const Head& head, std::string_view record) {
  std::string covered(sizeof(Head) - sizeof head.checksum, '\0');
  std::memcpy(covered.data(), &head.bytes, sizeof head.bytes);
  std::memcpy(covered.data() + sizeof head.bytes, &head.synced, sizeof head.synced);
  return crc32c(record, crc32c(covered));
}

void add(std::string& bytes, std::string_view record, std::uint64_t synced) {
  if (record.size() > kRecordMax)
    throw ResourceExhaustedError(str("a record of ", record.size(),
                                     " bytes is too large for a journal, which takes ",
                                     kRecordMax));
  Head head{.bytes = static_cast<std::uint32_t>(record.size()), .synced = synced};
  head.checksum = checksum_of(head, record);
  const std::size_t end = bytes.size() + sizeof head + filled_up(record.size());
  bytes.append(reinterpret_cast<const char*>(&head), sizeof head);
  bytes.append(record);
  bytes.resize(end);
}

std::string joined(std::span<const std::string> records, std::uint64_t synced) {
  std::string bytes;
  for (const std::string& record : records) add(bytes, record, synced);
  return bytes;
}

struct Read {
  std::string_view record;
  std::uint64_t synced = 0;
  std::size_t end = 0;
};

// None: no record begins here.
std::optional<Read> read_at(std::string_view all, std::size_t begin) {
  Head head;
  if (all.size() - begin < sizeof head) return std::nullopt;
  std::memcpy(&head, all.data() + begin, sizeof head);
  const std::size_t body = begin + sizeof head;
  if (all.size() - body < filled_up(head.bytes)) return std::nullopt;
  const std::string_view record = all.substr(body, head.bytes);
  if (checksum_of(head, record) != head.checksum) return std::nullopt;
  return Read{record, head.synced, body + filled_up(head.bytes)};
}

// How much of the file was synced, as far as records behind `begin` know, or `synced` if that is
// more.
std::uint64_t synced_at_last(std::string_view all, std::size_t begin, std::uint64_t synced) {
  for (std::size_t at = begin; at < all.size();) {
    const auto read = read_at(all, at);
    if (read) synced = std::max(synced, read->synced);
    at = read ? read->end : at + kAlignment;
  }
  return synced;
}

}  // namespace

RecordLog::RecordLog(std::unique_ptr<AppendedFile> file)
    : file_(std::move(file)), synced_(file_->size()) {}
RecordLog::RecordLog(RecordLog&&) noexcept = default;
RecordLog& RecordLog::operator=(RecordLog&&) noexcept = default;
RecordLog::~RecordLog() = default;

RecordLog RecordLog::make(Disk& disk, const std::string& path,
                          std::span<const std::string> records) {
  disk.write_atomically(path, joined(records, joined(records, 0).size()));
  return RecordLog(disk.append(path, AppendedFile::Existing::kGoOn));
}

// A torn end is cut off by writing the rest anew, as no disk needs to be able to shorten a file.
RecordLog RecordLog::go_on(Disk& disk, const std::string& path, const Found& found) {
  if (found.torn) disk.write_atomically(path, disk.read(path).substr(0, found.bytes));
  RecordLog log(disk.append(path, AppendedFile::Existing::kGoOn));
  log.sync();  // what was read may not have been synced by who wrote it
  return log;
}

void RecordLog::append(std::span<const std::string> records) {
  verify_sound();
  const std::string bytes = joined(records, synced_);
  failpoint("journal.begin");
  if (dies_at("journal.torn")) {
    file_->write(std::string_view(bytes).substr(0, bytes.size() / 2));
    failpoint("journal.torn");
  }
  file_->write(bytes);
  failpoint("journal.written");
}

void RecordLog::sync() {
  verify_sound();
  const std::uint64_t size = file_->size();
  failed_ = true;
  file_->sync();
  failpoint("journal.end");
  failed_ = false;
  synced_ = size;
}

void RecordLog::verify_sound() const {
  if (failed_)
    throw FailedPreconditionError(
        str(file_->path(), " could not be synced, and is not written any more"));
}

std::uint64_t RecordLog::size() const { return file_->size(); }
const std::string& RecordLog::path() const { return file_->path(); }

std::uint64_t synced_bytes(const Disk& disk, const std::string& path) {
  const std::string all = disk.read(path);
  return std::min<std::uint64_t>(synced_at_last(all, 0, 0), all.size());
}

RecordLog::Found read_records(const Disk& disk, const std::string& path) {
  const std::string all = disk.read(path);
  RecordLog::Found found;
  std::uint64_t synced = 0;
  while (found.bytes < all.size()) {
    const auto read = read_at(all, found.bytes);
    if (!read) break;
    found.records.emplace_back(read->record);
    found.bytes = read->end;
    synced = std::max(synced, read->synced);
  }
  found.torn = found.bytes < all.size();
  if (found.bytes < synced_at_last(all, found.bytes, synced))
    throw DataLossError(str(path, " is damaged at byte ", found.bytes,
                            ": a record that the disk had kept does not read as it was written"));
  return found;
}

}  // namespace cairn
