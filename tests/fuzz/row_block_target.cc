#include "core/base/checksum.h"
#include "core/rows/frequency_sketch.h"
#include "storage/row_block.h"
#include "tests/fuzz/refusal.h"

namespace cairn::fuzz {
namespace {

std::string sealed(std::string_view key, std::string_view value) {
  const std::uint32_t sum = crc32c(value, crc32c(key));
  return std::string(value).append(reinterpret_cast<const char*>(&sum), sizeof sum);
}

void read_record(std::string_view key, std::string_view value) {
  storage::describe_key(key);
  may_refuse([&] {
    CAIRN_CHECK(storage::encode(storage::decode_key(key)) == key,
                "a key changes when it is written again");
  });
  may_refuse([&] {
    const storage::StoredRows rows = storage::decode_rows(key, value);
    CAIRN_CHECK(storage::decode_rows(key, storage::encode(key, rows)) == rows,
                "rows change when they are written again");
  });
  may_refuse([&] { storage::decode_table(key, value); });
  may_refuse([&] {
    const storage::GoneRows gone = storage::decode_gone(key, value);
    CAIRN_CHECK(storage::decode_gone(key, storage::encode(key, gone)) == gone,
                "rows that went change when they are written again");
  });
  may_refuse([&] { FrequencySketch(64).add_saved(storage::decode_seen(key, value).sketch); });
}

}  // namespace

// The first byte is the key's length. The value as found, then under a checksum that fits.
void row_block(Bytes input) {
  const std::size_t size = std::min<std::size_t>(take_choice(input), input.size());
  const std::string_view key = text(input.first(size)), value = text(input.subspan(size));
  read_record(key, value);
  read_record(key, sealed(key, value));
}

}  // namespace cairn::fuzz
