// The arithmetic of update rules on a row in registers: that of core/kernels/cpu/rules_*.cc, but
// for the compiler's fused multiply-adds.
//
// A rule is used in two steps: load() as soon as the row is known, so that it is on its way while
// the gradients are added up, and update() with their sum.
#pragma once
#include <cstdint>

#include "core/kernels/cuda/embedding/tables.h"
#include "core/kernels/cuda/embedding/team.cuh"

namespace cairn::cuda {

template <typename S>
struct Sgd {
  Row<S> p;

  __device__ void load(const Team<S>& team, const float* row, std::int64_t) { p.load(team, row); }
  __device__ void update(const Team<S>& team, float* row, std::int64_t, const Row<S>& g,
                         const Rates& rates) {
#pragma unroll
    for (int v = 0; v < S::kVectors; ++v) {
      p.part[v].x -= rates.rate * g.part[v].x;
      p.part[v].y -= rates.rate * g.part[v].y;
      p.part[v].z -= rates.rate * g.part[v].z;
      p.part[v].w -= rates.rate * g.part[v].w;
    }
    p.store(team, row);
  }
};

template <typename S>
struct Adam {
  Row<S> p, m, v;

  __device__ void load(const Team<S>& team, const float* row, std::int64_t slot) {
    p.load(team, row);
    m.load(team, row + slot);
    v.load(team, row + 2 * slot);
  }
  __device__ static void step(float& p, float& m, float& v, float g, const Rates& rates) {
    m += (g - m) * rates.share_1;
    v += (g * g - v) * rates.share_2;
    p -= rates.rate * m / (sqrtf(v) + rates.epsilon);
  }
  __device__ void update(const Team<S>& team, float* row, std::int64_t slot, const Row<S>& g,
                         const Rates& rates) {
#pragma unroll
    for (int i = 0; i < S::kVectors; ++i) {
      step(p.part[i].x, m.part[i].x, v.part[i].x, g.part[i].x, rates);
      step(p.part[i].y, m.part[i].y, v.part[i].y, g.part[i].y, rates);
      step(p.part[i].z, m.part[i].z, v.part[i].z, g.part[i].z, rates);
      step(p.part[i].w, m.part[i].w, v.part[i].w, g.part[i].w, rates);
    }
    p.store(team, row);
    m.store(team, row + slot);
    v.store(team, row + 2 * slot);
  }
};

// One accumulator per row: the sum of the mean squares of its gradients. Lanes beyond the row have
// gradients of zero and add nothing.
template <typename S>
struct RowwiseAdagrad {
  Row<S> p;
  float accumulator = 0;

  __device__ void load(const Team<S>& team, const float* row, std::int64_t slot) {
    p.load(team, row);
    accumulator = row[slot];
  }
  __device__ void update(const Team<S>& team, float* row, std::int64_t slot, const Row<S>& g,
                         const Rates& rates) {
    float squares = 0;
#pragma unroll
    for (int v = 0; v < S::kVectors; ++v)
      squares += g.part[v].x * g.part[v].x + g.part[v].y * g.part[v].y + g.part[v].z * g.part[v].z +
                 g.part[v].w * g.part[v].w;
    accumulator += team.sum(squares) / static_cast<float>(team.dim);
    const float step = rates.rate / (sqrtf(accumulator) + rates.epsilon);
#pragma unroll
    for (int v = 0; v < S::kVectors; ++v) {
      p.part[v].x -= step * g.part[v].x;
      p.part[v].y -= step * g.part[v].y;
      p.part[v].z -= step * g.part[v].z;
      p.part[v].w -= step * g.part[v].w;
    }
    p.store(team, row);
    if (team.lane == 0) row[slot] = accumulator;
  }
};

// Calls `call` with an instance of the rule.
template <typename S, typename Call>
void with_rule(Rule rule, const Call& call) {
  switch (rule) {
    case Rule::kSgd: return call(Sgd<S>());
    case Rule::kAdam: return call(Adam<S>());
    case Rule::kRowwiseAdagrad: return call(RowwiseAdagrad<S>());
  }
}

}  // namespace cairn::cuda
