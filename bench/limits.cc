#include "bench/limits.h"

#include <unistd.h>

#include <cstring>
#include <memory>
#include <numeric>
#include <oneapi/dnnl/dnnl.hpp>

#include "bench/benches.h"
#include "core/base/random.h"
#include "core/graph/update_rule.h"
#include "core/kernels/cpu/gemm.h"
#include "core/kernels/cpu/onednn.h"
#include "core/memory/arena.h"
#include "core/rows/gather.h"

namespace cairn::bench {
namespace {

constexpr std::size_t kCopied = std::size_t{256} << 20;
constexpr std::size_t kRowsACall = 26 * 2048;  // a step's
// 3.4 million: their rows are many times the cache
constexpr std::size_t kIds = 64 * kRowsACall;
constexpr std::int64_t kFloats = 16;
constexpr std::int64_t kM = 2048, kK = 512, kN = 256;
constexpr double kWindow = 0.25;  // seconds

// How often `work` runs in a second, over about so many seconds.
template <typename F>
double rate(double seconds, F work) {
  const auto begin = Stopwatch::now();
  double took = 0;
  int count = 0;
  for (; took < seconds; took = seconds_since(begin), ++count) work();
  return count / took;
}

// Rows that exist, so that each is memory of its own, and random numbers of them.
struct RandomRows {
  RandomRows(std::size_t table_bytes, std::size_t row_bytes)
      : arena(table_bytes), rows(table_bytes / row_bytes), ids(kIds) {
    std::memset(arena.data(), 1, table_bytes);
    Random random(1);
    for (std::int64_t& id : ids) id = static_cast<std::int64_t>(random.below(rows));
  }
  std::span<const std::int64_t> next() {
    at = at + kRowsACall < ids.size() ? at + kRowsACall : 0;
    return std::span(ids).subspan(at, kRowsACall);
  }
  Arena arena;
  std::size_t rows;
  std::vector<std::int64_t> ids;
  std::size_t at = 0;
};

std::string at_size(const char* what, std::size_t bytes) {
  return str(what, " of ", bytes >> 20, " MB");
}

}  // namespace

const Series& Limits::once(const std::string& name, const char* unit, NamedProcesses processes,
                           const std::function<Work()>& make) {
  if (auto known = known_.find(name); known != known_.end()) return known->second;
  const Work work = make();
  work(kWindow / 4);
  Series series{
      .bench = "limits", .configuration = name, .unit = unit, .processes = std::move(processes)};
  series = measure(std::move(series), options_.windows, [&] { return work(kWindow); });
  report_.add(series);
  return known_.emplace(name, std::move(series)).first->second;
}

const Series& Limits::memory_copy() {
  return once("memory copy, 256 MB", "GB/s", {{"process", ::getpid()}},
              [this] { return [this](double seconds) { return memory_copy_now(seconds); }; });
}

double Limits::memory_copy_now(double seconds) {
  if (!copy_) {
    auto from = std::make_shared<Arena>(kCopied), to = std::make_shared<Arena>(kCopied);
    std::memset(from->data(), 1, kCopied);
    copy_ = [=](double window) {
      return rate(window, [&] { std::memcpy(to->data(), from->data(), kCopied); }) * kCopied * 1e-9;
    };
  }
  return copy_(seconds);
}

const Series& Limits::rows_gathered(std::size_t table_bytes) {
  return once(at_size("random 64-byte rows gathered", table_bytes), "M rows/s",
              {{"process", ::getpid()}}, [=] {
                constexpr std::size_t kRow = kFloats * sizeof(float);
                auto table = std::make_shared<RandomRows>(table_bytes, kRow);
                auto out = std::make_shared<std::vector<std::byte>>(kRowsACall * kRow);
                return [=](double seconds) {
                  return rate(seconds,
                              [&] {
                                gather_rows(table->arena.data(), kRow, kRow, table->next(),
                                            out->data());
                              }) *
                         kRowsACall * 1e-6;
                };
              });
}

std::function<double(double)> random_access(std::size_t table_bytes) {
  constexpr std::size_t kRow = kFloats * sizeof(float), kStride = 2 * kRow;
  auto table = std::make_shared<RandomRows>(table_bytes, kStride);
  auto out = std::make_shared<std::vector<std::byte>>(kRowsACall * kRow);
  auto gradients = std::make_shared<std::vector<float>>(kRowsACall * kFloats, 0.01f);
  const RowBlock block{DType::kFloat32, table->arena.data(), static_cast<std::int64_t>(table->rows),
                       kFloats,         2 * kFloats,         kFloats};
  return [=](double seconds) {
    return 1e-6 * kRowsACall * rate(seconds, [&] {
             gather_rows(table->arena.data(), kStride, kRow, table->next(), out->data());
             apply_rule({RuleKind::kAdagrad, {}}, {0.01f, 1}, block, table->next(),
                        std::as_bytes(std::span(*gradients)).data());
           });
  };
}

const Series& Limits::rows_updated(std::size_t table_bytes) {
  return once(at_size("random 128-byte rows of Adagrad updated", table_bytes), "M rows/s",
              {{"process", ::getpid()}}, [=] {
                auto table = std::make_shared<RandomRows>(table_bytes, 2 * kFloats * sizeof(float));
                auto gradients = std::make_shared<std::vector<float>>(kRowsACall * kFloats, 0.01f);
                const RowBlock block{
                    DType::kFloat32, table->arena.data(), static_cast<std::int64_t>(table->rows),
                    kFloats,         2 * kFloats,         kFloats};
                const UpdateRule adagrad{RuleKind::kAdagrad, {}};
                return [=](double seconds) {
                  auto update = [&] {
                    apply_rule(adagrad, {0.01f, 1}, block, table->next(),
                               std::as_bytes(std::span(*gradients)).data());
                  };
                  return rate(seconds, update) * kRowsACall * 1e-6;
                };
              });
}

const Series& Limits::ping_pong(EchoSocket socket) {
  const char* name =
      socket == EchoSocket::kUnix ? "4 MB there and back, Unix socket" : "4 MB there and back, TCP";
  return once(name, "GB/s", echo(socket).processes(), [this, socket] {
    return [this, socket](double seconds) { return ping_pong_now(socket, seconds); };
  });
}

double Limits::ping_pong_now(EchoSocket socket, double seconds) {
  const auto samples = echo(socket).run(seconds, RawEcho::kBytesMax);
  const double sum = std::accumulate(samples.begin(), samples.end(), 0.0);
  return 2e-3 * RawEcho::kBytesMax * static_cast<double>(samples.size()) / sum;
}

const Series& Limits::round_trips(EchoSocket socket) {
  const char* name =
      socket == EchoSocket::kUnix ? "64 B there and back, Unix socket" : "64 B there and back, TCP";
  return once(name, "1/s", echo(socket).processes(), [this, socket] {
    return [this, socket](double seconds) {
      auto samples = echo(socket).run(seconds);
      return 1e6 / percentile(samples, 0.5);
    };
  });
}

const Series& Limits::products() {
  return once("product 2048 x 512 x 256, float32", "GFLOP/s", {{"process", ::getpid()}}, [] {
    auto a = std::make_shared<std::vector<float>>(kM * kK, 0.5f),
         b = std::make_shared<std::vector<float>>(kK * kN, 0.25f);
    auto c = std::make_shared<std::vector<float>>(kM * kN);
    return [=](double seconds) {
      return rate(seconds,
                  [&] {
                    gemm({kM, kN, kK}, a->data(), b->data(), c->data());
                  }) *
             2e-9 * kM * kK * kN;
    };
  });
}

const Series* Limits::products_bf16() {
  const char* name = "product 2048 x 512 x 256, bfloat16";
  if (!onednn::has_bfloat16()) {
    report_.say(str("limits: ", name, ": not an instruction of this CPU"));
    return nullptr;
  }
  return &once(name, "GFLOP/s", {{"process", ::getpid()}}, [name] {
    using Memory = dnnl::memory;
    onednn::stay_on_this_thread();
    auto form = [](std::int64_t rows, std::int64_t columns, Memory::format_tag tag) {
      return Memory::desc({rows, columns}, Memory::data_type::bf16, tag);
    };
    const auto a = form(kM, kK, Memory::format_tag::ab), c = form(kM, kN, Memory::format_tag::ab);
    const dnnl::matmul::primitive_desc planned(
        dnnl::matmul::desc(a, form(kK, kN, Memory::format_tag::any), c), onednn::own_scratch(),
        onednn::engine());
    auto product =
        std::make_shared<onednn::Primitive>(dnnl::matmul(planned), planned.scratchpad_desc());
    auto filled = [](const Memory::desc& shape) {
      Memory memory(shape, onednn::engine());
      std::memset(memory.get_data_handle(), 0x3c, shape.get_size());
      return memory;
    };
    product->set(DNNL_ARG_SRC, filled(a));
    product->set(DNNL_ARG_WEIGHTS, filled(planned.weights_desc()));  // in the layout that suits it
    product->set(DNNL_ARG_DST, filled(c));
    return [product, name](double seconds) {
      return rate(seconds, [&] { product->run(name); }) * 2e-9 * kM * kK * kN;
    };
  });
}

void bench_limits(const Options&, Limits& limits, Report&) {
  limits.memory_copy();
  limits.rows_gathered();
  limits.rows_updated();
  for (EchoSocket socket : {EchoSocket::kUnix, EchoSocket::kTcp}) {
    limits.ping_pong(socket);
    limits.round_trips(socket);
  }
  limits.products();
  limits.products_bf16();
}

}  // namespace cairn::bench
