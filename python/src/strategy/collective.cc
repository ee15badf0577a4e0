// Groups of threads or processes that exchange arrays; and where variables lie on servers.
#include "collective/base/collective.h"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/unique_ptr.h>
#include <nanobind/stl/vector.h>

#include "collective/local/thread_group.h"
#include "collective/network/network_group.h"
#include "coordinator/engine/engine.h"
#include "coordinator/engine/engine_host.h"
#include "core/rows/layout.h"
#include "kinds.h"
#include "options.h"
#include "values.h"

namespace cairn::python {
namespace {

const Words<SumOrder>& sum_orders() {
  static const Words<SumOrder> words = {
      {"ranks", SumOrder::kRanks}, {"pairs", SumOrder::kPairs}, {"ring", SumOrder::kRing}};
  return words;
}

// One member, which one thread uses.
struct Member {
  std::unique_ptr<Collective> collective;
};

// The sums, or means, in memory of their own.
nb::object all_reduce(Member& member, const std::string& reduce_op, nb::handle values) {
  const ReduceOp op = reduce_op_of(reduce_op);
  std::vector<std::shared_ptr<Tensor>> sums;
  std::vector<AllReduceBuffer> buffers;
  for (nb::handle each : nb::iter(values)) {
    auto sum = std::make_shared<Tensor>(tensor_of(each).clone());
    std::byte* const at = sum->mutable_raw();
    buffers.push_back({op, sum->dtype(), sum->elements(), at, sum});
    sums.push_back(std::move(sum));
  }
  released([&] {
    Collective& group = *member.collective;
    group.wait(group.begin_all_reduce(std::move(buffers)));
  });
  nb::list all;
  for (const auto& sum : sums) all.append(numpy_of(*sum));
  return all;
}

void bind_collective(nb::module_& m) {
  nb::class_<Member>(m, "Collective", R"(A member of a group that exchanges arrays.

>>> (member,) = cairn.make_thread_group(1)
>>> member.all_reduce("sum", [np.ones(2, "float32")])
[array([1., 1.], dtype=float32)])")
      .def_prop_ro("rank", [](const Member& of) { return of.collective->rank(); })
      .def_prop_ro("size", [](const Member& of) { return of.collective->size(); })
      .def("all_reduce", &all_reduce, "reduce_op"_a, "values"_a,
           nb::sig("def all_reduce(self, reduce_op: str, values: "
                   "collections.abc.Sequence[cairn.typing.ArrayLike]) -> "
                   "list[cairn.typing.NDArray]"),
           "The \"sum\" or \"mean\" of what all members pass, of each value.")
      .def(
          "broadcast",
          [](Member& of, ArrayLike value, int root) {
            const Tensor own = tensor_of(value.object);
            return numpy_of(released([&] { return of.collective->broadcast(own, root); }));
          },
          "value"_a, "root"_a = 0,
          nb::sig("def broadcast(self, value: cairn.typing.ArrayLike, root: int = 0) -> "
                  "cairn.typing.NDArray"),
          "The value of member `root`, on all.")
      .def(
          "all_gather",
          [](Member& of, ArrayLike value) {
            const Tensor own = tensor_of(value.object);
            nb::list all;
            for (const Tensor& each : released([&] { return of.collective->all_gather(own); }))
              all.append(numpy_of(each));
            return all;
          },
          "value"_a,
          nb::sig("def all_gather(self, value: cairn.typing.ArrayLike) -> "
                  "list[cairn.typing.NDArray]"),
          "The values of all members, by rank.")
      .def(
          "reduce",
          [](Member& of, const std::string& reduce_op, ArrayLike value, int root) -> nb::object {
            const Tensor own = tensor_of(value.object);
            const ReduceOp op = reduce_op_of(reduce_op);
            const Tensor sum = released([&] { return of.collective->reduce(op, own, root); });
            return sum.defined() ? numpy_of(sum) : nb::object(nb::none());
          },
          "reduce_op"_a, "value"_a, "root"_a = 0,
          nb::sig("def reduce(self, reduce_op: str, value: cairn.typing.ArrayLike, root: int = 0) "
                  "-> cairn.typing.NDArray | None"),
          "The sum or mean on member `root`, None on the others.")
      .def(
          "barrier", [](Member& of) { released([&] { of.collective->barrier(); }); },
          "Until all members have called it.")
      .def(
          "abort",
          [](Member& of, const std::string& message) {
            of.collective->abort({.code = Code::kAborted, .message = message, .task = {}});
          },
          "message"_a, "Ends the group for all members, with an AbortedError.")
      .def(
          "require_well", [](Member& of) { of.collective->require_well(); },
          "Raises what the group has failed with.")
      .def_prop_ro(
          "counts", [](const Member& of) { return of.collective->counts(); },
          "What this member has exchanged.");
}

nb::list members_of(std::vector<std::unique_ptr<Collective>> group) {
  nb::list all;
  for (auto& each : group)
    all.append(nb::cast(new Member{std::move(each)}, nb::rv_policy::take_ownership));
  return all;
}

void bind_groups(nb::module_& m) {
  m.def(
      "make_thread_group",
      [](int size, double timeout, const std::string& order, int adds) {
        return members_of(make_thread_group(
            size, ThreadGroupOptions{duration_of(timeout),
                                     value_of_word("order", order, sum_orders()), adds}));
      },
      "size"_a, "timeout"_a = 600.0, "order"_a = "ranks", "adds"_a = -1,
      nb::sig("def make_thread_group(size: int, timeout: float = 600.0, order: str = 'ranks', "
              "adds: int = -1) -> list[Collective]"),
      "A member for each of several threads. order: \"ranks\", \"pairs\" or \"ring\".\n\n>>> "
      "[member.rank for member in cairn.make_thread_group(2)]\n[0, 1]");
  FieldsOf<GroupMember>(m, "GroupMember", R"(A process of a group.

>>> cairn.GroupMember(job="worker", index=1, address="a:4000").task()
'/job:worker/task:1')")
      .add("job", &GroupMember::job, "\"chief\", \"worker\" or \"ps\".")
      .add("index", &GroupMember::index, "Its number in its job.")
      .add("address", &GroupMember::address, "\"host:port\", as all members reach it.")
      .add("endpoint", &GroupMember::endpoint, "That the others dial there.")
      .options()
      .def("task", &GroupMember::task, "\"/job:worker/task:0\".");
  using Options = NetworkGroupOptions;
  FieldsOf<Options> fields(m, "NetworkGroupOptions", R"(How processes meet as a group.

>>> cairn.NetworkGroupOptions(rank=0, cluster="mine").cluster
'mine')");
  fields
      .with(
          "members", "collections.abc.Sequence[GroupMember]", "By rank; the same on all.",
          [](const Options& of) { return of.members; },
          [](Options& of, std::vector<GroupMember> value) { of.members = std::move(value); })
      .add("rank", &Options::rank, "Which of them is this one.")
      .with(
          "communication", "CommunicationOptions", "How they exchange values.",
          [](const Options& of) { return of.communication; },
          [](Options& of, CommunicationOptions value) { of.communication = value; })
      .seconds("start_timeout", &Options::start_timeout, "How long they wait for each other.")
      .seconds("heartbeat_interval", &Options::heartbeat_interval, "Seconds between two.")
      .add("heartbeats_missed_max", &Options::heartbeats_missed_max, "So many are too many.")
      .add("cluster", &Options::cluster, "Its name; the same on all.")
      .add("token", &Options::token, "The cluster's secret.")
      .add("insecure", &Options::insecure, "Other hosts may reach it without a token.")
      .add("incarnation", &Options::incarnation, "0: random.")
      .word("transport", &Options::transport,
            {{"auto", rpc::Transport::kAuto},
             {"tcp", rpc::Transport::kTcp},
             {"unix", rpc::Transport::kUnix}},
            "\"auto\", \"tcp\" or \"unix\".")
      .add("listens", &Options::listens, "It listens at its own address.")
      .add("group", &Options::group, "Which of several groups in a row this is.")
      .options();
  m.def(
      "make_network_group",
      [](const Options& options) {
        return new Member{released([&] { return make_network_group(options); })};
      },
      "options"_a, R"(This process's member, once all have met.

>>> member = cairn.GroupMember(job="worker", index=0, address="127.0.0.1:0")
>>> cairn.make_network_group(cairn.NetworkGroupOptions(members=[member])).rank
0)");
}

// ---- where variables lie ----

using SharedLayout = std::shared_ptr<const Layout>;

void bind_layout(nb::module_& m) {
  FieldsOf<RowRange>(m, "RowRange", "Rows [begin, end).")
      .add("begin", &RowRange::begin, "The first.")
      .add("end", &RowRange::end, "The one behind the last.")
      .report()
      .def_prop_ro("size", &RowRange::size);
  nb::class_<Part>(m, "Part", "Consecutive rows of a variable, on one shard.")
      .def_ro("shard", &Part::shard, "The shard's number.")
      .def_ro("rows", &Part::rows);
  nb::class_<VariableLayout>(m, "VariableLayout", "Where a variable's rows lie.")
      .def_ro("id", &VariableLayout::id)
      .def_prop_ro("spec", [](const VariableLayout& of) { return *of.spec; })
      .def_ro("rule", &VariableLayout::rule, "The rule that has slots.")
      .def_ro("parts", &VariableLayout::parts);
  nb::class_<ShardReplica>(m, "ShardReplica", "A copy of a shard's rows, on a parameter server.")
      .def_ro("ps", &ShardReplica::ps, "The number of the server.")
      .def_ro("address", &ShardReplica::address)
      .def_ro("endpoint", &ShardReplica::endpoint, "Of that address.")
      .def_prop_ro(
          "process", [](const ShardReplica& of) { return of.process.number; },
          "Another one after each start of the server; 0: it is away.");
  nb::class_<ShardLayout>(m, "ShardLayout", "Who answers for the rows of a shard.")
      .def_ro("primary", &ShardLayout::primary)
      .def_ro("backups", &ShardLayout::backups)
      .def_prop_ro(
          "epoch", [](const ShardLayout& of) { return of.epoch.number; },
          "Of the primary: the next one when another process answers.");
  nb::class_<Layout>(m, "Layout", "Which shard holds which rows.")
      .def_ro("version", &Layout::version)
      .def_ro("seed", &Layout::seed, "That of initial values.")
      .def_ro("shards", &Layout::shards)
      .def_ro("variables", &Layout::variables)
      .def_prop_ro("shard_count", &Layout::shard_count)
      .def(
          "find",
          [](const Layout& of, const std::string& name) -> std::optional<VariableLayout> {
            const VariableLayout* const found = of.find(name);
            if (found == nullptr) return std::nullopt;
            return *found;
          },
          "name"_a, "The variable of that name; None: there is none.");
}

}  // namespace

void bind_collectives(nb::module_& m) {
  bind_collective(m);
  bind_groups(m);
  bind_layout(m);
}

Layout layout_of(const StrategyObject& servers) {
  return *servers->as<ParameterServerStrategy>().host().engine().registry().layout();
}

}  // namespace cairn::python
