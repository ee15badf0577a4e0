// sharded_variable.json: a variable in several parts, as one: what lies where, lookups, subscripts,
// assignments. What programs see of it is the same under every strategy, so every case runs on
// parameter servers, on one device and on two replicas.
#include <type_traits>

#include "core/graph/ops.h"
#include "tests/strategy/recorded_strategies.h"
#include "tests/strategy/several_strategies.h"

namespace cairn {
namespace {

using testing::arange;
using testing::expect_value;
using testing::fail_unknown;
using testing::refused;
using testing::SeveralStrategies;
using testing::tensor_of;
using testing::Turns;

Tensor ids_of(const Json& ids) {
  return Tensor::of<std::int64_t>({static_cast<std::int64_t>(ids.size())},
                                  ids.get<std::vector<std::int64_t>>());
}

SeveralStrategies* strategies = nullptr;  // while the test runs

// The call has the recorded outcome under every strategy. Whatever the reference's class, what it
// refuses is an InvalidArgument here.
void expect_outcome(const Json& test, const std::function<Array(const Variable&)>& call) {
  const Json& out = test.at("out");
  strategies->each(test.at("in"), [&](Strategy&, const Variable& v) {
    if (refused(out))
      EXPECT_THROW(call(v).eval(), InvalidArgumentError);
    else
      expect_value(out.contains("ok") ? out.at("ok") : out, call(v).eval());
  });
}

// ---- parts ----

std::vector<Part> parts_of(const Json& in) {
  Turns& turns = strategies->cluster(in.at("num_shards"));
  return turns.parts(turns.create("laid", testing::shape_of(in.at("shape"))));
}

Json described(const Shape& shape, const std::vector<Part>& parts) {
  Json all = Json::array();
  for (const Part& part : parts) {
    std::vector<std::int64_t> offset(static_cast<std::size_t>(shape.rank()), 0);
    offset[0] = part.rows.begin;
    all.push_back({{"shape", shape.with_dim(0, part.rows.size()).dims()}, {"offset", offset}});
  }
  return all;
}

void is_cut(const Json& test) {
  const auto parts = parts_of(test.at("in"));
  const Shape shape = testing::shape_of(test.at("in").at("shape"));
  Json got = {{"sharded", parts.size() > 1}, {"shape", shape.dims()}};
  if (parts.size() > 1) got["shards"] = described(shape, parts);
  EXPECT_EQ(got, test.at("out"));
}

std::size_t part_with(const std::vector<Part>& parts, std::int64_t row) {
  for (std::size_t i = 0; i < parts.size(); ++i)
    if (parts[i].rows.begin <= row && row < parts[i].rows.end) return i;
  throw InvalidArgumentError("no part has row " + std::to_string(row));
}

// The rows of each part, numbered within it, in the order in which they occur among `rows`.
std::vector<std::vector<std::int64_t>> dealt_out(const std::vector<Part>& parts,
                                                 const std::vector<std::int64_t>& rows) {
  std::vector<std::vector<std::int64_t>> dealt(parts.size());
  for (std::int64_t row : rows) {
    const std::size_t i = part_with(parts, row);
    dealt[i].push_back(row - parts[i].rows.begin);
  }
  return dealt;
}

// ---- lookups ----

void looks_up(const Json& test) {
  const Json &in = test.at("in"), &out = test.at("out");
  if (in.at("values") != "row-major arange") return fail_unknown(test, "the values");
  const auto ids = in.at("ids").get<std::vector<std::int64_t>>();
  const auto parts = parts_of(in);
  for (std::size_t i = 0; i < ids.size(); ++i)
    EXPECT_EQ(out.at("shard_of_id").at(i), part_with(parts, ids[i])) << "id " << ids[i];
  EXPECT_EQ(out.at("rows_per_shard"), dealt_out(parts, ids));
  // The reference's sparse_read groups rows by part; ours keeps the order asked for, so it is asked
  // in that order here (docs/differences.md).
  const Tensor by_part = tensor_of(out.at("sparse_read_order_by_shard"));
  std::vector<std::int64_t> grouped;
  for (std::size_t i = 0; i < parts.size(); ++i)
    for (std::int64_t id : ids)
      if (part_with(parts, id) == i) grouped.push_back(id);
  strategies->each(in, [&](Strategy&, const Variable& v) {
    expect_value(out.at("embedding_lookup"), v.gather(ids_of(in.at("ids"))).eval());
    expect_value(out.at("sparse_read_order_by_shard"), v.gather(ids_of(grouped)).eval());
  });
}

std::vector<float> rows_of_arange(const std::vector<std::int64_t>& ids, std::int64_t dim) {
  std::vector<float> values;
  for (const std::int64_t id : ids)
    for (std::int64_t j = 0; j < dim; ++j) values.push_back(static_cast<float>(id * dim + j));
  return values;
}

// The recorded refusal of ids of rank 2 is not ours: they give rows of their shape.
void refuses_to_look_up(const Json& test) {
  const Json& in = test.at("in");
  const Json& ids = in.at("ids");
  if (ids.empty() || !ids.at(0).is_array())
    return expect_outcome(test, [&](const Variable& v) { return v.gather(ids_of(ids)); });
  EXPECT_EQ(test.at("out").at("error"), "ValueError");
  std::vector<std::int64_t> flat;
  for (const Json& row : ids)
    for (const Json& id : row) flat.push_back(id.get<std::int64_t>());
  const auto rows = static_cast<std::int64_t>(ids.size()),
             columns = static_cast<std::int64_t>(ids.at(0).size());
  if (rows * columns != std::ssize(flat)) return fail_unknown(test, "the ids");
  const Json cut = {{"shape", in.value("shape", Json({10, 2}))},
                    {"num_shards", in.value("num_shards", 3)}};
  strategies->each(cut, [&](Strategy&, const Variable& v) {
    const Tensor of_all = v.gather(Tensor::of<std::int64_t>({rows, columns}, flat)).eval();
    const std::int64_t dim = v.shape().row_elements();
    EXPECT_EQ(of_all.shape(), Shape({rows, columns, dim}));
    expect_value({{"dtype", "float32"},
                  {"shape", {rows * columns, dim}},
                  {"data", rows_of_arange(flat, dim)}},
                 of_all.reshaped({rows * columns, dim}));
  });
}

// Recorded for each part, in rows of its own; here the rows of the variable, once for all.
void has_gradients(const Json& test) {
  const Json& in = test.at("in");
  const auto parts = parts_of(in);
  const std::size_t dim = in.at("shape").at(1);
  strategies->each(in, [&](Strategy& strategy, const Variable& v) {
    std::vector<float> upstream;
    for (const Json& row : in.at("upstream"))
      for (const Json& x : row) upstream.push_back(x.get<float>());
    const auto ids = ids_of(in.at("ids"));
    const Tensor weights =
        Tensor::of<float>({ids.elements(), static_cast<std::int64_t>(dim)}, upstream);
    Function gradient = strategy.function([&](Array asked, Array dy) {
      const auto all = variable_gradients(sum(v.gather(asked) * dy));
      return Outputs{{"ids", all.at(0).sparse.ids}, {"rows", all.at(0).sparse.rows}};
    });
    const auto got = strategy.call(gradient, {ids, weights});
    const Tensor got_ids = got[0].tensor(), got_rows = got[1].tensor();
    std::vector<std::vector<std::int64_t>> rows(parts.size());
    std::vector<std::vector<float>> values(parts.size());
    for (std::size_t i = 0; i < static_cast<std::size_t>(got_ids.elements()); ++i) {
      const std::int64_t row = got_ids.values<std::int64_t>()[i];
      const std::size_t at = part_with(parts, row);
      rows[at].push_back(row - parts[at].rows.begin);
      const auto all = got_rows.values<float>().subspan(i * dim, dim);
      values[at].insert(values[at].end(), all.begin(), all.end());
    }
    for (std::size_t i = 0; i < parts.size(); ++i) {
      const Json& recorded = test.at("out").at("ok").at(i);
      EXPECT_EQ(recorded.at("indices").at("data"), rows[i]) << "part " << i;
      testing::expect_near(recorded.at("values"), values[i], testing::kOneOperation);
      EXPECT_EQ(recorded.at("dense_shape").at(0), parts[i].rows.size());
    }
  });
}

// ---- subscripts ----

std::optional<std::int64_t> bound(const Json& in, const char* name) {
  if (!in.contains(name) || in.at(name).is_null()) return std::nullopt;
  return in.at(name).get<std::int64_t>();
}
Slice slice_of(const Json& in) {
  return {bound(in, "start"), bound(in, "stop"), bound(in, "step")};
}

// The rows of range(n)[slice], found by walking.
std::vector<std::int64_t> python_rows(std::int64_t n, const Slice& slice) {
  const std::int64_t step = slice.step.value_or(1);
  auto from_start = [&](std::int64_t bound) { return bound < 0 ? bound + n : bound; };
  const std::int64_t first = step < 0 ? n - 1 : 0, behind = step < 0 ? -1 : n;
  const std::int64_t lowest = step < 0 ? -1 : 0, highest = step < 0 ? n - 1 : n;
  std::int64_t at = slice.start ? std::clamp(from_start(*slice.start), lowest, highest) : first;
  const std::int64_t stop =
      slice.stop ? std::clamp(from_start(*slice.stop), lowest, highest) : behind;
  std::vector<std::int64_t> rows;
  for (; step < 0 ? at > stop : at < stop; at += step) rows.push_back(at);
  return rows;
}

// The reference's answers are Python's, but for backward steps of 2 and more from beyond the end:
// there it starts below the last row. Here they are Python's always (docs/differences.md).
bool differs_from_python(const Json& in) {
  return in.at("step").get<std::int64_t>() <= -2 && !in.at("start").is_null() &&
         in.at("start").get<std::int64_t>() >= in.at("shape").at(0).get<std::int64_t>();
}

void is_sliced(const Json& test) {
  const Json &in = test.at("in"), &out = test.at("out").at("ok");
  const Slice slice = slice_of(in);
  const std::int64_t n = in.at("shape").at(0), dim = in.at("shape").at(1);
  const auto rows = python_rows(n, slice);
  std::vector<float> values;
  for (std::int64_t row : rows)
    for (std::int64_t j = 0; j < dim; ++j) values.push_back(static_cast<float>(row * dim + j));
  strategies->each(in, [&](Strategy&, const Variable& v) {
    const Tensor got = v.at({slice}).read().eval();
    if (!differs_from_python(in)) return expect_value(out.at("value"), got);
    EXPECT_EQ(got.shape(), Shape({static_cast<std::int64_t>(rows.size()), dim}));
    EXPECT_TRUE(std::ranges::equal(got.values<float>(), values)) << got.to_string();
  });
  if (differs_from_python(in)) return;
  // Each part contributes its recorded slice.
  const auto parts = parts_of(in);
  const auto dealt = dealt_out(parts, rows);
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const Json& local = out.at("local_slices").at(i);
    const Slice recorded =
        local.is_null()
            ? Slice{0, 0, 1}
            : slice_of({{"start", local.at(0)}, {"stop", local.at(1)}, {"step", local.at(2)}});
    EXPECT_EQ(dealt[i], python_rows(parts[i].rows.size(), recorded)) << "part " << i;
  }
}

Tensor mask_of_even(std::int64_t n) {
  Tensor mask(DType::kBool, {n});
  for (std::size_t i = 0; i < static_cast<std::size_t>(n); ++i)
    mask.mutable_values<bool>()[i] = i % 2 == 0;
  return mask;
}

std::optional<std::vector<Subscript>> subscripts_of(const Json& in) {
  const Json& index = in.at("index");
  if (index.is_number()) return {{index.get<std::int64_t>()}};
  const std::string text = index;
  if (text == "[1:4, 0:2]") return {{Slice{1, 4}, Slice{0, 2}}};
  if (text == "[2, 1]") return {{2, 1}};
  if (text == "[..., 1]") return {{kEllipsis, 1}};
  if (text == "[newaxis]") return {{kNewAxis}};
  if (text == "boolean mask of even rows") return {{mask_of_even(in.at("shape").at(0))}};
  return std::nullopt;
}

void is_indexed(const Json& test) {
  const auto subscripts = subscripts_of(test.at("in"));
  if (!subscripts) return fail_unknown(test, "the index");
  expect_outcome(test, [&](const Variable& v) { return v.at(*subscripts).read(); });
}

// A step of 0 is refused; a bound that is an Array does not compile.
void refuses_a_slice(const Json& test) {
  static_assert(!std::is_constructible_v<Subscript, Array>);
  static_assert(!std::is_convertible_v<Array, std::optional<std::int64_t>>);
  const Json& in = test.at("in");
  EXPECT_TRUE(refused(test.at("out")));
  if (in.contains("text")) {
    if (in.at("text") != "a tensor as slice bound") fail_unknown(test, "the text");
    return;
  }
  expect_outcome(test, [&](const Variable& v) { return v.at({slice_of(in)}).read(); });
}

// ---- assignments ----

void is_assigned(const Json& test) {
  const Json &in = test.at("in"), &out = test.at("out").at("ok");
  const auto parts = parts_of(in);
  const Tensor value = tensor_of(in.at("value"));
  strategies->each(in, [&](Strategy&, const Variable& v) {
    testing::assign(v, in.at("method"), value);
    const Tensor all = v.read().eval();
    expect_value(out.at("value"), all);
    for (std::size_t i = 0; i < parts.size(); ++i)
      expect_value(out.at("shards").at(i), all.rows(parts[i].rows.begin, parts[i].rows.end));
  });
}

void refuses_to_be_assigned(const Json& test) {
  const Json& in = test.at("in");
  EXPECT_TRUE(refused(test.at("out")));
  const Tensor value = Tensor::zeros(DType::kFloat32, testing::shape_of(in.at("value_shape")));
  strategies->each(in, [&](Strategy&, const Variable& v) {
    EXPECT_THROW(testing::assign(v, in.at("method"), value), InvalidArgumentError);
    expect_value({{"dtype", "float32"},
                  {"shape", in.at("shape")},
                  {"data",
                   [&] {
                     std::vector<float> all(static_cast<std::size_t>(v.shape().elements()));
                     std::iota(all.begin(), all.end(), 0.0f);
                     return all;
                   }()}},
                 v.read().eval());
  });
}

void is_scattered_to(const Json& test) {
  const Json& in = test.at("in");
  expect_outcome(test, [&](const Variable& v) {
    testing::scatter(v, in.at("method"), ids_of(in.at("indices")), tensor_of(in.at("updates")));
    return v.read();
  });
}

// ---- others ----

// A variable is made by a strategy alone, never put together of others (docs/differences.md).
void cannot_be_put_together(const Json& test) {
  static_assert(!std::is_constructible_v<Variable, std::vector<Variable>>);
  const std::string name = test.at("in").at("case");
  if (name == "uneven_ok") {
    // Parts of different sizes are no reason to refuse them: a partitioner cuts such ones too.
    EXPECT_FALSE(refused(test.at("out")));
    const auto parts = parts_of({{"shape", {5, 2}}, {"num_shards", 2}});
    ASSERT_EQ(parts.size(), 2u);
    EXPECT_NE(parts[0].rows.size(), parts[1].rows.size());
    return;
  }
  EXPECT_TRUE(refused(test.at("out")));
  for (const char* known : {"empty", "not_variables", "dtypes", "shapes"})
    if (name == known) return;
  fail_unknown(test, "the variables");
}

// Parts put together by hand, of other sizes than a partitioner gives: the same rows, however they
// are cut.
void is_cut_otherwise(const Json& test) {
  const Json& in = test.at("in");
  const auto rows = in.at("shard_rows").get<std::vector<std::int64_t>>();
  const std::int64_t n = std::accumulate(rows.begin(), rows.end(), std::int64_t{0});
  const Json cut = {{"shape", {n, 1}}, {"num_shards", rows.size()}};
  strategies->each(cut, [&](Strategy&, const Variable& v) {
    const Array got = in.contains("ids") ? v.gather(ids_of(in.at("ids"))) : v.at({slice_of(in)});
    expect_value(test.at("out").at("ok"), got.eval());
  });
}

// The shapes and offsets with which initial values are asked for: parts make their own rows.
void makes_its_rows(const Json& test) {
  const Json& out = test.at("out");
  const Json in = {{"shape", out.at(0).at("shape")}, {"num_shards", out.size()}};
  const Json parts = described(testing::shape_of(in.at("shape")), parts_of(in));
  ASSERT_EQ(parts.size(), out.size());
  for (std::size_t i = 0; i < out.size(); ++i) {
    EXPECT_EQ(parts.at(i).at("shape"), out.at(i).at("partition_shape"));
    EXPECT_EQ(parts.at(i).at("offset"), out.at(i).at("partition_offset"));
  }
}

void is_one_variable(const Json& test) {
  const Json &in = test.at("in"), &out = test.at("out");
  if (test.at("id") == "zeros_initializer") return makes_its_rows(test);
  if (test.at("id") == "to_tensor") {
    expect_outcome(test, [](const Variable& v) { return Array(v); });
  } else if (in.contains("text") && in.at("text") == "variable named 'table', 2 shards") {
    strategies->release();
    Turns turns(2, FixedShardsPartitioner(2));
    EXPECT_EQ(turns.describe(turns.create("table", testing::shape_of(out.at("shape")))), out);
  } else {
    fail_unknown(test, "the form");
  }
}

const testing::Kinds kShardedVariableKinds = {{"shards", is_cut},
                                              {"lookup", looks_up},
                                              {"lookup_errors", refuses_to_look_up},
                                              {"lookup_gradient", has_gradients},
                                              {"slice_read", is_sliced},
                                              {"slice_errors", refuses_a_slice},
                                              {"index_read", is_indexed},
                                              {"assign", is_assigned},
                                              {"assign_errors", refuses_to_be_assigned},
                                              {"scatter", is_scattered_to},
                                              {"other", is_one_variable},
                                              {"constructor", cannot_be_put_together},
                                              {"non_div", is_cut_otherwise}};

TEST(Vectors, ShardedVariable) {
  SeveralStrategies made;
  strategies = &made;
  testing::run_cases("sharded_variable", kShardedVariableKinds);
  strategies = nullptr;
}
TEST(Vectors, ShardedVariableOfFormsThatWereNotRecorded) {
  SeveralStrategies made;
  strategies = &made;
  testing::run_more_cases("sharded_variable", kShardedVariableKinds);
  strategies = nullptr;
}

}  // namespace
}  // namespace cairn
