#include "core/base/checksum.h"
#include "storage/manifest.h"
#include "tests/fuzz/refusal.h"

namespace cairn::fuzz {

// As found on the disk, then under a checksum that fits: a fuzzer would never find one.
void manifest(Bytes input) {
  may_refuse([&] { storage::parse_manifest(text(input), "MANIFEST.json"); });
  const std::string body = std::string(text(input)) + "\n";
  may_refuse([&] {
    const storage::Manifest read =
        storage::parse_manifest(str(body, "checksum ", crc32c(body), "\n"), "MANIFEST.json");
    CAIRN_CHECK(storage::parse_manifest(storage::to_text(read), "MANIFEST.json") == read,
                "a manifest changes when it is written again");
  });
}

}  // namespace cairn::fuzz
