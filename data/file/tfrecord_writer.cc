#include "data/file/tfrecord_writer.h"

#include "core/base/checksum.h"
#include "core/disk/output_file.h"
#include "data/file/proto_message.h"
#include "data/file/tfrecord_reader.h"

namespace cairn {
namespace {

constexpr std::size_t kPendingBytes = std::size_t{1} << 20;

template <typename Number>
void put_number(std::string& out, Number number) {
  out.append(reinterpret_cast<const char*>(&number), sizeof number);
}

std::string packed(const ProtoMessage& values) {
  return values.view().empty() ? "" : ProtoMessage().message(1, values).take();
}

}  // namespace

// Features.feature is a map: repeated entries of a key and a value.
ExampleMessage& ExampleMessage::add(std::string_view name, int kind, std::string_view list) {
  const std::string feature = ProtoMessage().bytes(kind, list).take();
  const std::string entry = ProtoMessage().bytes(1, name).bytes(2, feature).take();
  features_ += ProtoMessage().bytes(1, entry).view();
  return *this;
}

ExampleMessage& ExampleMessage::floats(std::string_view name, std::span<const float> values) {
  ProtoMessage list;
  for (const float value : values) list.fixed(value);
  return add(name, 2, packed(list));
}
ExampleMessage& ExampleMessage::floats(std::string_view name, std::initializer_list<float> values) {
  return floats(name, std::span(values.begin(), values.size()));
}

ExampleMessage& ExampleMessage::integers(std::string_view name,
                                         std::span<const std::int64_t> values) {
  ProtoMessage list;
  for (const std::int64_t value : values) list.varint(static_cast<std::uint64_t>(value));
  return add(name, 3, packed(list));
}
ExampleMessage& ExampleMessage::integers(std::string_view name,
                                         std::initializer_list<std::int64_t> values) {
  return integers(name, std::span(values.begin(), values.size()));
}

ExampleMessage& ExampleMessage::texts(std::string_view name,
                                      const std::vector<std::string>& values) {
  ProtoMessage list;
  for (const std::string& value : values) list.bytes(1, value);
  return add(name, 1, list.view());
}

std::string ExampleMessage::bytes() const { return ProtoMessage().bytes(1, features_).take(); }

std::string framed(std::string_view record) {
  std::string out;
  out.reserve(record.size() + 16);
  put_number(out, static_cast<std::uint64_t>(record.size()));
  put_number(out, masked_checksum(crc32c(out)));
  out += record;
  put_number(out, masked_checksum(crc32c(record)));
  return out;
}

TfRecordWriter::TfRecordWriter(const std::string& path)
    : file_(std::make_unique<OutputFile>(path)) {}
TfRecordWriter::~TfRecordWriter() = default;

void TfRecordWriter::write(std::string_view record) {
  pending_ += framed(record);
  if (pending_.size() < kPendingBytes) return;
  file_->write(pending_);
  pending_.clear();
}

void TfRecordWriter::finish() {
  file_->write(pending_);
  pending_.clear();
  file_->finish();
}

}  // namespace cairn
