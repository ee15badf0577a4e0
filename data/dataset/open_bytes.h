// OpenBytes: where a source of text takes its bytes from, if not from files on disk.
#pragma once
#include <functional>
#include <memory>
#include <string>

namespace cairn {

class ByteSource;  // data/file/byte_source.h

// Opens the bytes that a description knows as the file `path`. They may be others in each pass: a
// source that begins anew seeks to 0, and reads a byte order mark and a header again.
using OpenBytes = std::function<std::unique_ptr<ByteSource>(const std::string& path)>;

}  // namespace cairn
