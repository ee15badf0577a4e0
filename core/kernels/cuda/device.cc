#include "core/kernels/cuda/device.h"

#include <algorithm>

#include "core/base/error.h"
#include "core/disk/trace.h"
#include "core/graph/op_def.h"
#include "core/kernels/cuda/ops/group_sums.h"
#include "core/kernels/cuda/ops/kernel_table.h"
#include "core/kernels/cuda/ops/row_kernels.h"
#include "core/kernels/cuda/runtime/host_run.h"
#include "core/kernels/cuda/runtime/times.h"
#include "core/kernels/cuda/runtime/tracks.h"
#include "core/kernels/cuda/trees/fused.h"

namespace cairn::cuda {
namespace {

std::size_t bytes_of(const TensorType& type) {
  return static_cast<std::size_t>(type.shape.elements()) * dtype_bytes(type.dtype);
}

// The types that `op` reads. Where it needs only the shape of an input, it reads no elements.
std::vector<TensorType> read_by(const OpDef& op, std::span<const TensorType> inputs) {
  std::vector<TensorType> types(inputs.begin(), inputs.end());
  for (std::size_t i = 0; i < types.size(); ++i)
    if (op.needs_shape_only(i)) types[i].shape = Shape{0};
  return types;
}

bool has_strings(const KernelTypes& types) {
  const auto is_string = [](const TensorType& type) { return type.dtype == DType::kString; };
  return std::ranges::any_of(types.inputs, is_string) ||
         std::ranges::any_of(types.outputs, is_string);
}

const char* copy_text(Device::Direction direction) {
  switch (direction) {
    case Device::Direction::kIn: return "copy to the device";
    case Device::Direction::kOut: return "copy to the host";
    case Device::Direction::kWithin: break;
  }
  return "copy within the device";
}

// The device as one workspace sees it.
class QueueDevice final : public Device, public QueueOwner {
 public:
  // `trace`: where what the device does is recorded; null: nowhere.
  QueueDevice(std::string name, Driver& driver, Device& cpu, SpanSink* trace, QueueNumbers& numbers)
      : name_(std::move(name)),
        track_(numbers, name_),
        queue_(driver, cpu),
        fusion_(*this),
        rows_(make_row_kernels(queue_)) {
    const bool printed = OperationTimes::are_printed();
    if (printed || trace != nullptr)
      times_ = std::make_unique<OperationTimes>(driver, printed, trace, track_.name());
  }

  Queue& queue() override { return queue_; }
  std::string_view name() const override { return name_; }
  Memory memory() const override { return Memory::kOwn; }
  std::size_t used_bytes() const override { return queue_.driver().used_bytes(); }

  std::optional<Room> room() const override { return queue_.driver().room(); }

  std::shared_ptr<std::byte> allocate(std::size_t bytes) override {
    return allocate_for(Use::kValues, bytes);
  }
  std::shared_ptr<std::byte> allocate_rows(std::size_t bytes) override {
    return allocate_for(Use::kVariables, bytes);
  }

  void copy(Direction direction, std::byte* to, const std::byte* from, std::size_t bytes) override {
    if (direction == Direction::kIn) return copy_in_kept(to, from, bytes, nullptr);
    if (direction == Direction::kOut) {
      begin_copy_out(to, from, bytes);
      return finish_copies_out();
    }
    const auto move = [&] {
      if (bytes > 0) queue_.driver().copy(queue_.stream(), direction, to, from, bytes);
      queue_.written(to, bytes);
    };
    looked_at() ? during(copy_text(direction), move) : move();
  }
  void copy_in_kept(std::byte* to, const std::byte* from, std::size_t bytes,
                    const std::shared_ptr<const void>& keeper) override {
    const auto send = [&] { queue_.copy_in(to, from, bytes, keeper); };
    looked_at() ? during(copy_text(Direction::kIn), send) : send();
  }
  void begin_copy_out(std::byte* to, const std::byte* from, std::size_t bytes) override {
    begin_copy_out_kept(to, from, bytes, nullptr);
  }
  void begin_copy_out_kept(std::byte* to, const std::byte* from, std::size_t bytes,
                           const std::shared_ptr<const void>& keeper) override {
    const auto begin = [&] { queue_.begin_copy_out(to, from, bytes, keeper); };
    looked_at() ? during(copy_text(Direction::kOut), begin) : begin();
  }
  void finish_copies_out() override {
    queue_.wait();
    if (times_ != nullptr) times_->collect();
  }
  void drop_copies_out() noexcept override { queue_.drop_copies_out(); }
  std::shared_ptr<void> register_host(std::byte* begin, std::size_t bytes) override {
    return queue_.driver().host_ranges().add(begin, bytes);
  }
  void send_ahead(std::span<const Tensor> values) override { queue_.send_ahead(values); }

  KernelRun prepare(const OpDef& op, const KernelTypes& types) override {
    if (has_strings(types) || op.has(OpFlags::kOnHost))
      return run_on_host(queue_, queue_.cpu().prepare(op, types), types);
    if (const Kernel* kernel = find_kernel(op.name))
      return seen(fault_text(op.name, types.inputs, ""),
                  watched(kernel->prepare(queue_, types), read_by(op, types.inputs), types.outputs,
                          types.products));
    if (!op.has(OpFlags::kElementwise)) return {};
    return fusion_.prepare(FusedTree::of(op, types));
  }
  bool takes_bfloat16(const OpDef& op) const override {
    return makes_bfloat16(op) || op.has(OpFlags::kSumToShape);
  }
  bool makes_bfloat16(const OpDef& op) const override {
    return op.has(OpFlags::kElementwise) || op.has(OpFlags::kMatrixProduct) ||
           op.has(OpFlags::kOfProducts) || op.has(OpFlags::kJoin) || op.has(OpFlags::kSlice);
  }
  bool takes_rows_within(const OpDef& op) const override { return op.has(OpFlags::kOfProducts); }
  Fusion* fusion() override { return &fusion_; }
  RowKernels* row_kernels() override { return looked_at() ? &seen_rows_ : rows_.get(); }
  void begin_step(std::int64_t number) override {
    queue_.driver().enter();
    if (!names_) return;
    queue_.driver().begin_range(number < 0 ? "a run" : str("step ", number).c_str());
  }
  void end_step() override {
    if (names_) queue_.driver().end_range();
  }
  std::unique_ptr<RecordedWork> record(const std::function<void()>& enqueue) override {
    if (times_ != nullptr) return nullptr;
    // Nothing that is recorded may rest on what was done before it only once.
    queue_.forget_copies();
    auto made =
        std::make_unique<Work>(queue_, queue_.driver().record_work(queue_.stream(), enqueue));
    queue_.forget_copies();
    return made;
  }

 private:
  std::shared_ptr<std::byte> allocate_for(Use use, std::size_t bytes) {
    auto memory = queue_.memory(bytes, use);
    std::byte* const data = memory->data();
    return {std::move(memory), data};
  }

  class Trees final : public Fusion {
   public:
    explicit Trees(QueueDevice& device) : device_(device) {}
    KernelRun prepare(const FusedTree& tree) override {
      std::vector<TensorType> inputs = tree.leaves;
      if (tree.product) {
        inputs.push_back({tree.factors[0], {tree.product->m, tree.product->k}});
        inputs.push_back({tree.factors[1], {tree.product->k, tree.product->n}});
      }
      std::string what = tree.product ? str("product ", tree.product->m, " x ", tree.product->n,
                                            " x ", tree.product->k, ", ")
                                      : "";
      for (const FusedTree::Node& node : tree.nodes) what += str(node.op->name, " ");
      return device_.seen(
          str(what, tree.result.to_string()),
          device_.watched(fuse(device_.queue_, tree), inputs, {&tree.result, 1}, tree.products));
    }

   private:
    QueueDevice& device_;
  };

  class Work final : public RecordedWork {
   public:
    Work(Queue& queue, std::unique_ptr<Recording> recording)
        : queue_(queue), recording_(std::move(recording)) {}
    void replay() override {
      recording_->replay(queue_.stream());
      queue_.forget_copies();
    }

   private:
    Queue& queue_;
    std::unique_ptr<Recording> recording_;
  };

  // The row kernels of a device whose operations are timed or named.
  class SeenRows final : public RowKernels {
   public:
    explicit SeenRows(QueueDevice& device) : device_(device) {}
    Gathers prepare_gathers(std::span<const GatherOf> all) override {
      return [this,
              what = all.size() == 1 ? "rows of " + all[0].table.to_string()
                                     : str("rows of ", all.size(), " variables"),
              run = device_.rows_->prepare_gathers(all)](std::span<const GatherRun> runs) {
        device_.during(what, [&] { run(runs); });
      };
    }
    Update prepare_update(const UpdateRule& rule, const TensorType& table,
                          const TensorType* ids) override {
      return [this,
              what = str(rule_name(rule.kind), ids != nullptr ? " by ids of " : " of ",
                         table.to_string()),
              run = device_.rows_->prepare_update(rule, table, ids)](const UpdateRun& one) {
        device_.during(what, [&] {
          run(one);
          // It may have gone to a stream of its own, on which nothing is timed.
          if (device_.times_ != nullptr) device_.queue_.join();
        });
      };
    }

    Updates prepare_updates(std::span<const UpdateOf> all) override {
      return [this, what = str("updates of ", all.size(), " variables"),
              run = device_.rows_->prepare_updates(all)](std::span<const UpdateRun> runs) {
        device_.during(what, [&] {
          run(runs);
          if (device_.times_ != nullptr) device_.queue_.join();
        });
      };
    }

    void fill_zero(std::byte* rows, std::size_t bytes) override {
      device_.during("zeros", [&] { device_.rows_->fill_zero(rows, bytes); });
    }
    void finish_updates() override { device_.rows_->finish_updates(); }
    std::unique_ptr<CachedRows> cache_rows(const RowBlock& home,
                                           const CacheOptions& options) override {
      return device_.rows_->cache_rows(home, options);
    }

   private:
    QueueDevice& device_;
  };

  // Whether single operations are watched: by a profiler, a trace, or CAIRN_GPU_TIMES.
  bool looked_at() const { return times_ != nullptr || names_; }

  template <typename Enqueue>
  void during(const std::string& what, const Enqueue& enqueue) {
    const NamedRange range(names_ ? &queue_.driver() : nullptr, what);
    if (times_ != nullptr)
      times_->time(what, queue_.stream(), enqueue);
    else
      enqueue();
  }

  KernelRun seen(std::string what, KernelRun run) {
    if (!looked_at()) return run;
    return [this, what = std::move(what), run = std::move(run)](const KernelCall& call) {
      during(what, [&] { run(call); });
    };
  }

  // Announces the writes of each run to the queue, if products have copies of them; and its reads
  // and writes to the driver, if it watches.
  KernelRun watched(KernelRun run, std::span<const TensorType> inputs,
                    std::span<const TensorType> outputs, Arithmetic products) {
    const bool announces = queue_.driver().watches();
    if (!announces && !rounds_to_bfloat16(products)) return run;
    std::vector<Range> reads(inputs.size()), writes(outputs.size());
    for (std::size_t i = 0; i < inputs.size(); ++i) reads[i].bytes = bytes_of(inputs[i]);
    for (std::size_t i = 0; i < outputs.size(); ++i) writes[i].bytes = bytes_of(outputs[i]);
    return [this, announces, run = std::move(run), reads, writes](const KernelCall& call) mutable {
      for (std::size_t i = 0; i < reads.size(); ++i) reads[i].begin = call.inputs[i];
      for (std::size_t i = 0; i < writes.size(); ++i) writes[i].begin = call.outputs[i];
      if (announces) queue_.driver().announce(queue_.stream(), reads, writes);
      run(call);
      for (const Range& made : writes) queue_.written(made.begin, made.bytes);
    };
  }

  std::string name_;
  const Track track_;
  Queue queue_;
  Trees fusion_;
  std::unique_ptr<RowKernels> rows_;
  std::unique_ptr<OperationTimes> times_;  // nullptr: not wanted
  const bool names_ = queue_.driver().wants_names();
  SeenRows seen_rows_{*this};
};

// The device that is chosen, of which each workspace opens a QueueDevice.
class CudaDevice final : public Device {
 public:
  CudaDevice(std::string name, Driver& driver, Device& cpu, DeviceOptions options)
      : name_(std::move(name)), driver_(driver), cpu_(cpu), options_(std::move(options)) {}

  std::string_view name() const override { return name_; }
  Memory memory() const override { return Memory::kOwn; }
  std::size_t used_bytes() const override { return driver_.used_bytes(); }
  std::optional<DeviceFigures> figures() const override {
    const MemoryUse& use = driver_.use();
    DeviceFigures made;
    made.model = options_.model;
    made.memory_bytes = options_.memory_bytes;
    made.variables_bytes = use.bytes(Use::kVariables);
    made.values_bytes = use.bytes(Use::kValues);
    made.cache_bytes = use.bytes(Use::kCache);
    made.scratch_bytes = use.bytes(Use::kScratch);
    made.registered_bytes = driver_.host_ranges().bytes();
    const Driver::CachedLookups& rows = driver_.cached_lookups();
    if (const std::uint64_t found = rows.found, all = found + rows.read; all > 0)
      made.cache_found = static_cast<double>(found) / static_cast<double>(all);
    made.busy_percent = driver_.busy_percent();
    return made;
  }
  DeviceGroup join(std::span<Device* const> devices, const DeviceGroupPlace& place) override {
    std::vector<Driver*> drivers;
    for (Device* const each : devices) {
      auto* const own = dynamic_cast<CudaDevice*>(each);
      if (own == nullptr) return {{}, str(name_, " and ", each->name(), " are of different kinds")};
      drivers.push_back(&own->driver_);
    }
    SumGroup made = driver_.join(drivers, place);
    DeviceGroup group{{}, std::move(made.text)};
    const SumReach reach = place.spans() ? SumReach::kProcesses : SumReach::kThisProcess;
    for (std::size_t i = 0; i < made.members.size(); ++i)
      group.members.push_back(make_device_member(*drivers[i], std::move(made.members[i]), reach));
    return group;
  }
  DeviceSumMeans sum_means() override { return driver_.sum_means(); }
  std::string new_group_id() override { return driver_.new_group_id(); }
  std::unique_ptr<Device> open() override {
    SpanSink* const sink = options_.trace;
    SpanSink* const trace = sink != nullptr && sink->wanted() ? sink : nullptr;
    return std::make_unique<QueueDevice>(name_, driver_, cpu_, trace, queues_);
  }

  std::shared_ptr<void> register_host(std::byte* begin, std::size_t bytes) override {
    return driver_.host_ranges().add(begin, bytes);
  }

  std::shared_ptr<std::byte> allocate(std::size_t) override { return fail(), nullptr; }
  void copy(Direction, std::byte*, const std::byte*, std::size_t) override { fail(); }
  KernelRun prepare(const OpDef&, const KernelTypes&) override { return fail(), KernelRun(); }

 private:
  void fail() const { CAIRN_CHECK(false, "work for ", name_, " without a queue: see open()"); }

  std::string name_;
  Driver& driver_;
  Device& cpu_;
  const DeviceOptions options_;
  QueueNumbers queues_;
};

}  // namespace

std::unique_ptr<Device> make_device(std::string name, Driver& driver, Device& cpu,
                                    DeviceOptions options) {
  return std::make_unique<CudaDevice>(std::move(name), driver, cpu, std::move(options));
}

}  // namespace cairn::cuda
