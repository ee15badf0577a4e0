// Random numbers by counter, equal to the CPU's (core/kernels/cpu/random.cc): uniform numbers and
// integers to the bit, normal ones to within the rounding of log and cos.
#include <cmath>
#include <numbers>

#include "core/base/philox.h"
#include "core/kernels/cuda/ops/kernel_table.h"
#include "core/kernels/cuda/runtime/launch.h"

namespace cairn::cuda {
namespace {

// The key of a run: seed and place are the operation's, the numbers of input 0 the step's. They lie
// in device memory, so that every thread chains them for itself.
struct KeySource {
  std::uint64_t base;
  std::int64_t numbers;
  bool narrow;

  CAIRN_DEVICE std::uint64_t key(const std::byte* input) const {
    std::uint64_t key = base;
    for (std::int64_t i = 0; i < numbers; ++i) {
      const std::int64_t number = narrow ? reinterpret_cast<const std::int32_t*>(input)[i]
                                         : reinterpret_cast<const std::int64_t*>(input)[i];
      key = counter_random::random_key(key, static_cast<std::uint64_t>(number));
    }
    return key;
  }
};

KeySource key_source(const KernelTypes& types) {
  const auto number = [&](std::string_view name) {
    return static_cast<std::uint64_t>(types.attributes.get<std::int64_t>(name));
  };
  return {random_key(number("seed"), number("place")), types.inputs[0].shape.elements(),
          types.inputs[0].dtype == DType::kInt32};
}

CAIRN_DEVICE float uniform(std::uint32_t bits) { return static_cast<float>(bits >> 8) * 0x1p-24f; }

CAIRN_DEVICE float normal(const RandomBits& bits) {
  const float radius = std::sqrt(-2.0f * std::log(1.0f - uniform(bits[0])));
  return radius * std::cos(2.0f * std::numbers::pi_v<float> * uniform(bits[1]));
}

// bits * bound >> 64.
CAIRN_DEVICE std::uint64_t scaled(std::uint64_t bits, std::uint64_t bound) {
#ifdef __CUDACC__
  return __umul64hi(bits, bound);
#else
  return scaled_below(bits, bound);
#endif
}

KernelRun prepare_uniform(Queue& queue, const KernelTypes& types) {
  const auto low = static_cast<float>(types.attributes.get<double>("low")),
             high = static_cast<float>(types.attributes.get<double>("high"));
  // low + u * (high - low) may round up to `high`, which is excluded.
  const float limit = low < high ? std::nextafter(high, low) : low;
  return [&queue, source = key_source(types), n = types.outputs[0].shape.elements(), low,
          width = high - low, limit](const KernelCall& call) {
    const std::byte* const numbers = call.inputs[0];
    float* const out = output_of<float>(call);
    for_each(queue, (n + 3) / 4, [=] CAIRN_KERNEL_BODY(std::int64_t block) {
      const RandomBits words =
          counter_random::philox(source.key(numbers), static_cast<std::uint64_t>(block), 0);
      for (int l = 0; l < 4; ++l) {
        if (block * 4 + l >= n) return;
#ifdef __CUDACC__
        // As the CPU rounds it: a product, then a sum.
        const float drawn = __fadd_rn(low, __fmul_rn(uniform(words[l]), width));
#else
        const float drawn = low + uniform(words[static_cast<std::size_t>(l)]) * width;
#endif
        out[block * 4 + l] = drawn > limit ? limit : drawn;
      }
    });
  };
}

struct Bell {
  KeySource source;
  std::int64_t n;
  float mean, stddev;
};

Bell bell_of(const KernelTypes& types) {
  return {key_source(types), types.outputs[0].shape.elements(),
          static_cast<float>(types.attributes.get<double>("mean")),
          static_cast<float>(types.attributes.get<double>("stddev"))};
}

KernelRun prepare_normal(Queue& queue, const KernelTypes& types) {
  return [&queue, bell = bell_of(types)](const KernelCall& call) {
    const std::byte* const numbers = call.inputs[0];
    float* const out = output_of<float>(call);
    for_each(queue, bell.n, [=] CAIRN_KERNEL_BODY(std::int64_t i) {
      const std::uint64_t key = bell.source.key(numbers);
      out[i] = bell.mean +
               bell.stddev * normal(counter_random::philox(key, static_cast<std::uint64_t>(i), 0));
    });
  };
}

// Redrawn while it lies beyond two deviations, each draw under a counter of its own.
KernelRun prepare_truncated_normal(Queue& queue, const KernelTypes& types) {
  return [&queue, bell = bell_of(types)](const KernelCall& call) {
    const std::byte* const numbers = call.inputs[0];
    float* const out = output_of<float>(call);
    for_each(queue, bell.n, [=] CAIRN_KERNEL_BODY(std::int64_t i) {
      const std::uint64_t key = bell.source.key(numbers);
      float drawn = 0;
      for (std::uint64_t attempt = 0; attempt < 100; ++attempt) {
        const float one =
            normal(counter_random::philox(key, static_cast<std::uint64_t>(i), attempt));
        if (std::fabs(one) <= 2.0f) {
          drawn = one;
          break;
        }
      }
      out[i] = bell.mean + bell.stddev * drawn;
    });
  };
}

KernelRun prepare_integers(Queue& queue, const KernelTypes& types) {
  const auto low = static_cast<std::uint64_t>(types.attributes.get<std::int64_t>("low"));
  const std::uint64_t count =
      static_cast<std::uint64_t>(types.attributes.get<std::int64_t>("high")) - low;
  return [&queue, source = key_source(types), n = types.outputs[0].shape.elements(), low,
          count](const KernelCall& call) {
    const std::byte* const numbers = call.inputs[0];
    std::int64_t* const out = output_of<std::int64_t>(call);
    for_each(queue, n, [=] CAIRN_KERNEL_BODY(std::int64_t i) {
      const RandomBits words =
          counter_random::philox(source.key(numbers), static_cast<std::uint64_t>(i), 0);
      const std::uint64_t bits = words[0] | (std::uint64_t{words[1]} << 32);
      out[i] = static_cast<std::int64_t>(low + scaled(bits, count));
    });
  };
}

constexpr Kernel kRandomKernels[] = {
    {"random_uniform", prepare_uniform},
    {"random_normal", prepare_normal},
    {"random_truncated_normal", prepare_truncated_normal},
    {"random_integers", prepare_integers},
};

}  // namespace

std::span<const Kernel> random_kernels() { return kRandomKernels; }

}  // namespace cairn::cuda
