// The list holds for each record: bytes that its key shares with the one before, bytes of the rest,
// the rest, bytes from the block before to this one. Numbers are varints, of 7 bits a byte, low
// ones first.
#include "storage/stores/rocks_record_list.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include "core/base/error.h"

namespace cairn::storage {
namespace {

constexpr const char* kListProperty = "cairn.records";

void put_number(std::string& out, std::uint64_t value) {
  for (; value >= 0x80; value >>= 7) out.push_back(static_cast<char>(value | 0x80));
  out.push_back(static_cast<char>(value));
}

class RecordListCollector final : public rocksdb::TablePropertiesCollector {
 public:
  // `begin`: what has been written so far are the blocks before this record's.
  rocksdb::Status AddUserKey(const rocksdb::Slice& key, const rocksdb::Slice&, rocksdb::EntryType,
                             rocksdb::SequenceNumber, std::uint64_t begin) override {
    const auto differ =
        std::mismatch(last_key_.begin(), last_key_.end(), key.data(), key.data() + key.size());
    const auto shared = static_cast<std::size_t>(differ.first - last_key_.begin());
    put_number(list_, shared);
    put_number(list_, key.size() - shared);
    list_.append(key.data() + shared, key.size() - shared);
    put_number(list_, begin - last_begin_);
    last_key_.assign(key.data(), key.size());
    last_begin_ = begin;
    return rocksdb::Status::OK();
  }
  rocksdb::Status Finish(rocksdb::UserCollectedProperties* properties) override {
    (*properties)[kListProperty] = std::move(list_);
    return rocksdb::Status::OK();
  }
  rocksdb::UserCollectedProperties GetReadableProperties() const override { return {}; }
  const char* Name() const override { return kListProperty; }

 private:
  std::string list_, last_key_;
  std::uint64_t last_begin_ = 0;
};

class RecordListCollectors final : public rocksdb::TablePropertiesCollectorFactory {
 public:
  rocksdb::TablePropertiesCollector* CreateTablePropertiesCollector(Context) override {
    return new RecordListCollector;
  }
  const char* Name() const override { return kListProperty; }
};

// The part of a list that is still to be read. RocksDB has verified the checksum of its bytes.
class ListBytes {
 public:
  ListBytes(std::string_view left, const std::string& file) : left_(left), file_(file) {}

  bool any() const { return !left_.empty(); }
  std::uint64_t number() {
    std::uint64_t value = 0;
    for (unsigned shift = 0; shift < 64; shift += 7) {
      const auto byte = static_cast<unsigned char>(take(1).front());
      value |= static_cast<std::uint64_t>(byte & 0x7f) << shift;
      if (byte < 0x80) return value;
    }
    bad();
  }
  std::string_view take(std::uint64_t size) {
    if (size > left_.size()) bad();
    const std::string_view taken = left_.substr(0, size);
    left_.remove_prefix(size);
    return taken;
  }
  [[noreturn]] void bad() const {
    throw DataLossError(str("the list of records in ", file_, " cannot be read"));
  }

 private:
  std::string_view left_;
  const std::string& file_;
};

}  // namespace

std::shared_ptr<rocksdb::TablePropertiesCollectorFactory> make_record_list_collectors() {
  return std::make_shared<RecordListCollectors>();
}

std::optional<RecordList> record_list_of(const rocksdb::TableProperties& properties,
                                         const std::string& file) {
  const auto found = properties.user_collected_properties.find(kListProperty);
  if (found == properties.user_collected_properties.end()) return std::nullopt;
  RecordList list;
  list.reserve(properties.num_entries);
  std::string key;
  std::uint64_t begin = 0;
  for (ListBytes left(found->second, file); left.any();) {
    const std::uint64_t shared = left.number();
    if (shared > key.size()) left.bad();
    key.resize(shared);
    key.append(left.take(left.number()));
    begin += left.number();
    list.push_back({key, begin, 0});
  }
  if (list.size() != properties.num_entries) ListBytes({}, file).bad();
  for (std::size_t i = list.size(); i-- > 0;) {
    const bool last = i + 1 == list.size();
    const std::uint64_t next = last ? properties.data_size : list[i + 1].begin;
    list[i].end = !last && next == list[i].begin ? list[i + 1].end : next;
  }
  return list;
}

}  // namespace cairn::storage
