// Random numbers by counter: element i under a key is a function of both alone, so a closure that
// runs again, on any worker, draws the same numbers. Uniform numbers use all four words of a block
// of Philox; the others take a block each, because what they draw per element must not depend on
// the element before.
#include "core/base/random.h"

#include <cmath>

#include "core/base/clones.h"
#include "core/kernels/cpu/kernel_table.h"

namespace cairn {
namespace {

// The key of a run: seed and place are the operation's, the numbers of input 0 the step's.
struct KeySource {
  std::uint64_t base;
  std::int64_t numbers;
  bool narrow;

  std::uint64_t key(const KernelCall& call) const {
    std::uint64_t key = base;
    for (std::int64_t i = 0; i < numbers; ++i)
      key =
          random_key(key, static_cast<std::uint64_t>(narrow ? input_of<std::int32_t>(call, 0)[i]
                                                            : input_of<std::int64_t>(call, 0)[i]));
    return key;
  }
};

KeySource key_source(const KernelTypes& types) {
  auto number = [&](std::string_view name) {
    return static_cast<std::uint64_t>(types.attributes.get<std::int64_t>(name));
  };
  return {random_key(number("seed"), number("place")), types.inputs[0].shape.elements(),
          types.inputs[0].dtype == DType::kInt32};
}

// philox() makes four numbers at a time.
CAIRN_CLONES void fill_uniform(std::uint64_t key, std::int64_t n, float low, float width,
                               float limit, float* out) {
  for (std::int64_t i = 0; i < n; i += 4) {
    RandomBits words = philox(key, static_cast<std::uint64_t>(i / 4), 0);
    for (std::int64_t l = 0; l < 4 && i + l < n; ++l) {
      float drawn = low + uniform_float(words[static_cast<std::size_t>(l)]) * width;
      out[i + l] = drawn > limit ? limit : drawn;
    }
  }
}

KernelRun prepare_uniform(const KernelTypes& types) {
  auto low = static_cast<float>(types.attributes.get<double>("low")),
       high = static_cast<float>(types.attributes.get<double>("high"));
  // low + u * (high - low) may round up to `high`, which is excluded.
  float limit = low < high ? std::nextafter(high, low) : low;
  return [source = key_source(types), n = types.outputs[0].shape.elements(), low, high,
          limit](const KernelCall& call) {
    fill_uniform(source.key(call), n, low, high - low, limit, output_of<float>(call));
  };
}

template <typename Draw>
KernelRun prepare_bell(const KernelTypes& types, Draw draw) {
  auto mean = static_cast<float>(types.attributes.get<double>("mean")),
       stddev = static_cast<float>(types.attributes.get<double>("stddev"));
  return [source = key_source(types), n = types.outputs[0].shape.elements(), mean, stddev,
          draw](const KernelCall& call) {
    std::uint64_t key = source.key(call);
    for (std::int64_t i = 0; i < n; ++i)
      output_of<float>(call)[i] = mean + stddev * draw(key, static_cast<std::uint64_t>(i));
  };
}

KernelRun prepare_normal(const KernelTypes& types) {
  return prepare_bell(
      types, [](std::uint64_t key, std::uint64_t i) { return standard_normal(philox(key, i, 0)); });
}
KernelRun prepare_truncated_normal(const KernelTypes& types) {
  return prepare_bell(types, truncated_normal);
}

// The range is taken unsigned: high - low of two int64 may not fit into one.
KernelRun prepare_integers(const KernelTypes& types) {
  auto low = static_cast<std::uint64_t>(types.attributes.get<std::int64_t>("low"));
  std::uint64_t count =
      static_cast<std::uint64_t>(types.attributes.get<std::int64_t>("high")) - low;
  return [source = key_source(types), n = types.outputs[0].shape.elements(), low,
          count](const KernelCall& call) {
    std::uint64_t key = source.key(call);
    for (std::int64_t i = 0; i < n; ++i) {
      RandomBits words = philox(key, static_cast<std::uint64_t>(i), 0);
      std::uint64_t bits = words[0] | (std::uint64_t{words[1]} << 32);
      output_of<std::int64_t>(call)[i] = static_cast<std::int64_t>(low + scaled_below(bits, count));
    }
  };
}

constexpr CpuKernel kRandomKernels[] = {
    {"random_uniform", prepare_uniform},
    {"random_normal", prepare_normal},
    {"random_truncated_normal", prepare_truncated_normal},
    {"random_integers", prepare_integers},
};

}  // namespace

std::span<const CpuKernel> random_kernels() { return kRandomKernels; }

}  // namespace cairn
