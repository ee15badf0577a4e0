#include "data/tfrecord_writer.h"

#include "core/base/checksum.h"
#include "core/base/output_file.h"
#include "data/tfrecord_reader.h"

namespace cairn {
namespace {

constexpr std::size_t kPendingBytes = std::size_t{1} << 20;

void put_varint(std::string& out, std::uint64_t value) {
  for (; value >= 0x80; value >>= 7) out.push_back(static_cast<char>(value | 0x80));
  out.push_back(static_cast<char>(value));
}

// A field that holds bytes: wire type 2.
void put_field(std::string& out, int field, std::string_view bytes) {
  put_varint(out, static_cast<std::uint64_t>(field) << 3 | 2);
  put_varint(out, bytes.size());
  out += bytes;
}

template <typename Number>
void put_number(std::string& out, Number number) {
  out.append(reinterpret_cast<const char*>(&number), sizeof number);
}

std::string packed(std::string_view values) {
  std::string list;
  if (!values.empty()) put_field(list, 1, values);
  return list;
}

}  // namespace

// Features.feature is a map: repeated entries of a key and a value.
ExampleMessage& ExampleMessage::add(std::string_view name, int kind, std::string_view list) {
  std::string feature, entry;
  put_field(feature, kind, list);
  put_field(entry, 1, name);
  put_field(entry, 2, feature);
  put_field(features_, 1, entry);
  return *this;
}

ExampleMessage& ExampleMessage::floats(std::string_view name, std::span<const float> values) {
  std::string bytes;
  for (const float value : values) put_number(bytes, value);
  return add(name, 2, packed(bytes));
}
ExampleMessage& ExampleMessage::floats(std::string_view name, std::initializer_list<float> values) {
  return floats(name, std::span(values.begin(), values.size()));
}

ExampleMessage& ExampleMessage::integers(std::string_view name,
                                         std::span<const std::int64_t> values) {
  std::string bytes;
  for (const std::int64_t value : values) put_varint(bytes, static_cast<std::uint64_t>(value));
  return add(name, 3, packed(bytes));
}
ExampleMessage& ExampleMessage::integers(std::string_view name,
                                         std::initializer_list<std::int64_t> values) {
  return integers(name, std::span(values.begin(), values.size()));
}

ExampleMessage& ExampleMessage::texts(std::string_view name,
                                      const std::vector<std::string>& values) {
  std::string list;
  for (const std::string& value : values) put_field(list, 1, value);
  return add(name, 1, list);
}

std::string ExampleMessage::bytes() const {
  std::string example;
  put_field(example, 1, features_);
  return example;
}

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
