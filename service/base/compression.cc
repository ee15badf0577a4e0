#include "service/base/compression.h"

#include <capnp/message.h>
#include <capnp/serialize.h>
#include <kj/exception.h>
#include <zlib.h>

#include "core/base/error.h"
#include "core/graph/wire/wire.h"
#include "rpc/server/this_host.h"
#include "service/service.capnp.h"

namespace cairn::service {
namespace {

constexpr std::uint64_t kRawBytesMax = std::uint64_t{512} << 20;
constexpr std::uint64_t kRatioMax = 1032;  // zlib's own bound
constexpr int kLevel = 1;

[[noreturn]] void refuse(const char* why) {
  throw InvalidArgumentError(str("a data worker sent a compressed element that is none: ", why));
}

Element read_columns(kj::ArrayPtr<const capnp::word> words) {
  try {
    capnp::ReaderOptions options;
    options.traversalLimitInWords = 4 * words.size() + 1024;
    capnp::FlatArrayMessageReader reader(words, options);
    Element element;
    for (auto column : wire::bounded(reader.getRoot<wire::DataColumns>().getColumns(),
                                     wire::kColumnsMax, "columns"))
      element.push_back(wire::read(column));
    return element;
  } catch (const kj::Exception& error) {
    refuse(error.getDescription().cStr());
  }
}

}  // namespace

std::string_view name_of(Compression compression) {
  constexpr std::string_view kNames[] = {"AUTO", "OFF", "ZLIB"};
  return kNames[static_cast<std::size_t>(compression)];
}

Compression compression_of(std::uint8_t number) {
  if (number > static_cast<std::uint8_t>(Compression::kZlib))
    throw InvalidArgumentError(
        str("compression ", int{number}, " is none: there are AUTO (0), OFF (1) and ZLIB (2)"));
  return static_cast<Compression>(number);
}

Compression chosen(Compression asked, const rpc::Address& data_worker) {
  if (asked != Compression::kAuto) return asked;
  return rpc::is_on_this_host(data_worker) ? Compression::kOff : Compression::kZlib;
}

PackedElement pack(const Element& element) {
  capnp::MallocMessageBuilder message;
  auto columns =
      message.initRoot<wire::DataColumns>().initColumns(static_cast<unsigned>(element.size()));
  for (unsigned i = 0; i < columns.size(); ++i) wire::write(columns[i], element[i]);
  const auto words = capnp::messageToFlatArray(message);
  const auto raw = words.asBytes();
  PackedElement packed;
  packed.raw_bytes = raw.size();
  uLongf size = ::compressBound(static_cast<uLong>(raw.size()));
  packed.bytes.resize(size);
  const int result = ::compress2(reinterpret_cast<Bytef*>(packed.bytes.data()), &size, raw.begin(),
                                 static_cast<uLong>(raw.size()), kLevel);
  CAIRN_CHECK(result == Z_OK, "compress2 of zlib");
  packed.bytes.resize(size);
  return packed;
}

Element unpack(const std::byte* bytes, std::size_t size, std::uint64_t raw_bytes) {
  if (raw_bytes > kRawBytesMax || raw_bytes / kRatioMax > size)
    refuse("it claims to be larger than it can be");
  if (raw_bytes % sizeof(capnp::word) != 0) refuse("its size is no whole number of words");
  std::vector<capnp::word> words(raw_bytes / sizeof(capnp::word));
  uLongf got = static_cast<uLongf>(raw_bytes);
  const int result = ::uncompress(reinterpret_cast<Bytef*>(words.data()), &got,
                                  reinterpret_cast<const Bytef*>(bytes), static_cast<uLong>(size));
  if (result != Z_OK || got != raw_bytes) refuse("its bytes are damaged");
  return read_columns(kj::ArrayPtr<const capnp::word>(words.data(), words.size()));
}

}  // namespace cairn::service
