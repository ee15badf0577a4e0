// RocksDB's outcomes as errors of ours. Only files named rocks_* include RocksDB.
#pragma once
#include <rocksdb/env.h>
#include <rocksdb/status.h>

#include <cstdarg>
#include <string>

#include "core/base/error.h"

namespace cairn::storage {

// NoSpace is the user's to mend; InvalidArgument means that we called it wrongly. Only we write
// these files, so whatever else happens to them is lost data.
[[noreturn]] inline void raise_rocksdb(const rocksdb::Status& status, const std::string& doing) {
  const std::string message = str(doing, ": ", status.ToString());
  if (status.IsNoSpace())
    throw ResourceExhaustedError(
        str(message, ". Free space on that disk, or checkpoint elsewhere"));
  if (status.IsInvalidArgument()) throw InternalError(message);
  throw DataLossError(message);
}
template <typename... Parts>
void check_rocksdb(const rocksdb::Status& status, const Parts&... doing) {
  if (!status.ok()) [[unlikely]]
    raise_rocksdb(status, str(doing...));
}

class NoLog final : public rocksdb::Logger {
 public:
  using rocksdb::Logger::Logv;
  void Logv(const char*, va_list) override {}
};

}  // namespace cairn::storage
