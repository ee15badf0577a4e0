#include "tools/job/parts/deep_input.h"

#include "core/base/error.h"
#include "core/graph/ops.h"
#include "tools/job/parts/embedded_ids.h"

namespace cairn::tools {
namespace {

bool takes(const std::set<std::string>& of, const std::string& name) {
  return of.empty() || of.contains(name);
}

std::string name_of(const NumericInput& input) {
  return input.days_until ? input.column + "_age" : input.column;
}

// Whether `of` names what is read of the dates of `column`: such features are called otherwise.
bool takes_dates(const FittedFeatures& fitted, const std::set<std::string>& of,
                 const std::string& column) {
  for (const FeatureColumn& feature : fitted.columns) {
    if (feature.kind == FeatureColumn::Kind::kDatePart && feature.inputs.front() == column &&
        of.contains(feature.name))
      return true;
    for (const NumericInput& input : feature.numerics)
      if (input.days_until && input.column == column && of.contains(name_of(input))) return true;
  }
  return false;
}

// The standardised numbers are one column, in which each has its place; an indicator of a missing
// cell belongs to its column.
Array standardised(const FittedFeatures& fitted, const Features& features,
                   const std::set<std::string>& of) {
  const Array all = features["numeric"];
  if (of.empty()) return all;
  std::vector<Array> parts;
  for (const FeatureColumn& column : fitted.columns)
    for (std::size_t i = 0; i < column.numerics.size(); ++i) {
      const std::string name = name_of(column.numerics[i]);
      const std::string of_column = name.substr(0, name.rfind("/missing"));
      const bool indicates = of_column != name;
      if (of.contains(name) || of.contains(of_column) ||
          (indicates && takes_dates(fitted, of, of_column)))
        parts.push_back(slice(all, 1, static_cast<std::int64_t>(i), 1));
    }
  return parts.empty() ? Array() : parts.size() == 1 ? parts[0] : concat(parts, 1);
}

}  // namespace

Combiner combiner_of(const Job& job) {
  if (job.model.combiner == "sum") return Combiner::kSum;
  return job.model.combiner == "mean" ? Combiner::kMean : Combiner::kSqrtn;
}

Array numbers_of(const FittedFeatures& fitted, const Features& features,
                 const std::set<std::string>& of) {
  std::vector<Array> parts;
  if (fitted.numeric)
    if (Array some = standardised(fitted, features, of); some.defined()) parts.push_back(some);
  for (const auto& name : fitted.plain) {
    if (!takes(of, name)) continue;
    Array numbers = features[name];
    if (numbers.dtype() != DType::kFloat32) numbers = cast(numbers, DType::kFloat32);
    parts.push_back(numbers.rank() == 1 ? expand_dims(numbers, 1) : numbers);
  }
  return parts.empty() ? Array() : parts.size() == 1 ? parts[0] : concat(parts, 1);
}

DeepInput::DeepInput(const Job& job, const FittedFeatures& fitted, const std::string& part,
                     const std::set<std::string>& of)
    : fitted_(fitted), part_(part), of_(of) {
  for (const IdFeature& id : embedded_ids(job, fitted)) {
    if (!takes(of, id.name) && !takes(of, id.field)) continue;
    const JobTable said = job.table_of(id.name, id.rows);
    nn::EmbeddingOptions table{.name = part + "/" + id.name,
                               .rows = id.rows,
                               .dim = job.model.embedding_dim,
                               .seed = job.model.seed,
                               .hashed = *said.hashed,
                               .policy = said.policy};
    if (id.bags) table.combiner = combiner_of(job);
    embeddings_.emplace_back(table);
    ids_.push_back(id);
  }
}

// The embeddings of a field with several values lie one after another.
Array DeepInput::operator()(const Features& features) const {
  std::vector<Array> parts;
  for (std::size_t i = 0; i < embeddings_.size(); ++i) {
    Array vectors = embeddings_[i](ids_[i].of(features));
    if (vectors.rank() == 3)
      vectors = reshape(vectors, {-1, vectors.shape()[1] * vectors.shape()[2]});
    parts.push_back(vectors);
  }
  if (Array all = numbers_of(fitted_, features, of_); all.defined()) parts.push_back(all);
  if (parts.empty())
    throw InvalidArgumentError(str("the part \"", part_, "\" of the model has no features"));
  return parts.size() == 1 ? parts[0] : concat(parts, 1);
}

}  // namespace cairn::tools
