// The text of a compressed file as a ByteSource.
#pragma once
#include <memory>
#include <string>

#include "data/file/byte_source.h"
#include "data/file/decompressor.h"

namespace cairn {

// `file` at its beginning. Going back costs decompressing what lies before.
std::unique_ptr<ByteSource> make_compressed_file(std::string path, std::unique_ptr<ByteSource> file,
                                                 Packing packing);
// The same source, at its beginning, with up to 64 MB of text in memory, where seeking is free.
std::unique_ptr<ByteSource> keep_if_small(const std::string& path,
                                          std::unique_ptr<ByteSource> text);

// `offset` is where reading was to continue.
[[noreturn]] void fail_short(const std::string& path, std::uint64_t offset);

}  // namespace cairn
