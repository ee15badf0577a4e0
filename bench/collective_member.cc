// cairn-bench-collective-member: one member of a group that cairn-bench measures, of ours or, where
// it was there when this was built, of Gloo. Each line of its input is a kind of work and how
// often; it answers with the seconds that took.
//
//   cairn-bench-collective-member SYSTEM RANK FOLDER TRANSPORT ADDRESS...
#include <chrono>
#include <cstdio>
#include <cstring>
#include <iostream>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "collective/network/network_group.h"
#include "core/base/program.h"
#include "core/tensor/tensor.h"

#ifdef CAIRN_BENCH_GLOO
#include <gloo/allreduce.h>
#include <gloo/allreduce_halving_doubling.h>
#include <gloo/allreduce_ring_chunked.h>
#include <gloo/barrier.h>
#include <gloo/rendezvous/context.h>
#include <gloo/rendezvous/file_store.h>
#include <gloo/transport/tcp/device.h>
#endif

namespace cairn::bench {
namespace {

constexpr std::int64_t kLarge = 25'000'000;  // floats: 100 MB
constexpr std::int64_t kSmall = 1024;        // floats: 4 KB
constexpr int kSmallOnes = 1000;

// The values of all kinds of work, and a system that reduces them.
class Member {
 public:
  virtual ~Member() = default;
  virtual void barrier() = 0;
  virtual void reduce(Tensor& value) = 0;                // alone
  virtual void reduce(std::vector<Tensor>& values) = 0;  // together, where the system can
  // A thousand calls, each begun without waiting for the one before if the library allows that.
  virtual void reduce_each(std::vector<Tensor>& values) = 0;
};

class CairnMember final : public Member {
 public:
  CairnMember(int rank, const std::string& transport, const std::vector<std::string>& addresses) {
    NetworkGroupOptions options;
    options.rank = rank;
    options.transport = rpc::parse_transport(transport);
    for (const auto& address : addresses)
      options.members.push_back(
          {"worker", static_cast<std::uint32_t>(options.members.size()), address});
    group_ = make_network_group(options);
  }
  void barrier() override { group_->barrier(); }
  void reduce(Tensor& value) override { group_->wait(group_->begin_all_reduce({of(value)})); }
  void reduce(std::vector<Tensor>& values) override {
    std::vector<AllReduceBuffer> reductions;
    for (Tensor& each : values) reductions.push_back(of(each));
    group_->wait(group_->begin_all_reduce(std::move(reductions)));
  }
  void reduce_each(std::vector<Tensor>& values) override {
    Collective::Ticket last = -1;
    for (Tensor& each : values) last = group_->begin_all_reduce({of(each)});
    group_->wait(last);
  }

 private:
  static AllReduceBuffer of(Tensor& value) {
    return {ReduceOp::kSum, DType::kFloat32, value.elements(), value.mutable_raw(), value.owner()};
  }
  std::unique_ptr<Collective> group_;
};

#ifdef CAIRN_BENCH_GLOO
class GlooMember final : public Member {
 public:
  GlooMember(std::string algorithm, int rank, int size, const std::string& folder)
      : algorithm_(std::move(algorithm)) {
    gloo::transport::tcp::attr attributes;
    attributes.hostname = "127.0.0.1";
    auto device = gloo::transport::tcp::CreateDevice(attributes);
    gloo::rendezvous::FileStore store(folder);
    auto made = std::make_shared<gloo::rendezvous::Context>(rank, size);
    made->connectFullMesh(store, device);
    context_ = made;
  }
  void barrier() override {
    gloo::BarrierOptions options(context_);
    gloo::barrier(options);
  }
  void reduce(Tensor& value) override {
    auto* floats = value.mutable_values<float>().data();
    const auto n = static_cast<std::size_t>(value.elements());
    if (algorithm_ == "gloo-ring") {
      gloo::AllreduceOptions options(context_);
      options.setOutput(floats, n);
      options.setAlgorithm(gloo::AllreduceOptions::Algorithm::RING);
      using Sum = void (*)(void*, const void*, const void*, std::size_t);
      options.setReduceFunction(static_cast<Sum>(&gloo::sum<float>));
      gloo::allreduce(options);
    } else {
      prepared(floats, static_cast<int>(n)).run();
    }
  }
  void reduce(std::vector<Tensor>& values) override {
    if (!packed_.defined()) packed_ = Tensor::zeros(DType::kFloat32, {kSmall * kSmallOnes});
    (void)values;  // as if they had been packed for nothing
    reduce(packed_);
  }
  void reduce_each(std::vector<Tensor>& values) override {
    for (Tensor& each : values) reduce(each);
  }

 private:
  // Gloo's older algorithms are objects that are made for a buffer and run many times.
  gloo::Algorithm& prepared(float* floats, int n) {
    auto& made = prepared_[floats];
    if (made == nullptr) {
      const std::vector<float*> buffers = {floats};
      if (algorithm_ == "gloo-ring-chunked")
        made = std::make_unique<gloo::AllreduceRingChunked<float>>(context_, buffers, n);
      else
        made = std::make_unique<gloo::AllreduceHalvingDoubling<float>>(context_, buffers, n);
    }
    return *made;
  }

  std::string algorithm_;
  std::shared_ptr<gloo::Context> context_;
  Tensor packed_;
  std::map<float*, std::unique_ptr<gloo::Algorithm>> prepared_;
};
#endif

std::unique_ptr<Member> make_member(const std::string& system, int rank, const std::string& folder,
                                    const std::string& transport,
                                    const std::vector<std::string>& addresses) {
  if (system == "cairn") return std::make_unique<CairnMember>(rank, transport, addresses);
#ifdef CAIRN_BENCH_GLOO
  return std::make_unique<GlooMember>(system, rank, static_cast<int>(addresses.size()), folder);
#else
  (void)folder;
  throw UnimplementedError("built without Gloo: Debian's libgloo-dev has it");
#endif
}

void serve(Member& member) {
  Tensor large;
  std::vector<Tensor> small;
  std::string kind;
  int count = 0;
  while (std::cin >> kind >> count) {
    if (kind == "large" && !large.defined()) large = Tensor::zeros(DType::kFloat32, {kLarge});
    if (kind != "large" && small.empty())
      for (int i = 0; i < kSmallOnes; ++i)
        small.push_back(Tensor::zeros(DType::kFloat32, {kSmall}));
    const auto run = [&] {
      if (kind == "large") member.reduce(large);
      if (kind == "packed") member.reduce(small);
      if (kind == "calls") member.reduce_each(small);
    };
    member.barrier();
    const auto begin = std::chrono::steady_clock::now();
    for (int i = 0; i < count; ++i) run();
    member.barrier();
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
    std::cout << took.count() << std::endl;
  }
}

}  // namespace
}  // namespace cairn::bench

int main(int argc, char** argv) {
  return cairn::run_program("cairn-bench-collective-member", [&] {
    if (argc < 6) throw cairn::InvalidArgumentError("SYSTEM RANK FOLDER TRANSPORT ADDRESS...");
    const auto member = cairn::bench::make_member(argv[1], std::atoi(argv[2]), argv[3], argv[4],
                                                  {argv + 5, argv + argc});
    std::cout << "ready" << std::endl;
    cairn::bench::serve(*member);
    return 0;
  });
}
