// Limits of this machine, measured in the same run as the figures that are held against them.
#pragma once
#include <cstddef>
#include <functional>
#include <map>
#include <string>

#include "bench/measure.h"
#include "bench/options.h"
#include "bench/raw_echo.h"
#include "core/tensor/tensor.h"

namespace cairn::bench {

// The most that this machine can do. One thread measures each limit, two processes measure the
// echoes. A limit is measured and reported when it is first asked for.
//   Rows  are of 16 floats, in an Arena as tables have them (huge pages where the system allows),
//         at random, through the very loops of a ps: 64 bytes a row to read, 128 with the slots of
//         Adagrad to update.
class Limits {
 public:
  // Forks: make it before there are threads.
  Limits(const Options& options, Report& report) : options_(options), report_(report) {}

  const Series& memory_copy();  // GB/s copied, 256 MB at once
  // the same once more, for a figure that is measured in turns with it
  double memory_copy_now(double seconds);
  const Series& rows_gathered(std::size_t table_bytes = kGiB);  // M rows/s
  const Series& rows_updated(std::size_t table_bytes = kGiB);   // M rows/s
  // GB/s, both ways together, 4 MB each way
  const Series& ping_pong(EchoSocket socket);
  double ping_pong_now(EchoSocket socket, double seconds);  // once more, likewise
  const Series& round_trips(EchoSocket socket);             // a second, 64 bytes
  // GFLOP/s, 2048 x 512 x 256, float32
  const Series& products();
  // the same in bfloat16; null: not an instruction of this CPU
  const Series* products_bf16();

  RawEcho& echo(EchoSocket socket) { return socket == EchoSocket::kUnix ? unix_ : tcp_; }

  static constexpr std::size_t kGiB = std::size_t{1} << 30;

 private:
  // `make` makes the work of a window: it is called once, and its result takes the seconds of a
  // window and returns the figure.
  using Work = std::function<double(double)>;
  const Series& once(const std::string& name, const char* unit, NamedProcesses processes,
                     const std::function<Work()>& make);

  const Options& options_;
  Report& report_;
  RawEcho unix_{EchoSocket::kUnix}, tcp_{EchoSocket::kTcp};
  Work copy_;
  std::map<std::string, Series> known_;
};

// The machine's own random access to rows laid as a table with Adagrad's slots has them, of so many
// bytes in all: a function that takes some seconds and returns how many rows, in millions, it read
// and as many others it updated in each.
std::function<double(double)> random_access(std::size_t table_bytes);

}  // namespace cairn::bench
