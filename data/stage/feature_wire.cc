#include "data/stage/feature_wire.h"

#include "data/format/wire_parts.h"

namespace cairn {

void write_kind(pipeline::Stage::Builder stage, const FeaturesSpec& spec) {
  auto out = stage.initFeatures(static_cast<unsigned>(spec.columns.size()));
  for (unsigned i = 0; i < out.size(); ++i) {
    const FeatureColumn& feature = spec.columns[i];
    out[i].setKind(static_cast<std::uint8_t>(feature.kind));
    out[i].setName(feature.name);
    write_texts(out[i].initInputs(static_cast<unsigned>(feature.inputs.size())), feature.inputs);
    auto numerics = out[i].initNumerics(static_cast<unsigned>(feature.numerics.size()));
    for (unsigned k = 0; k < numerics.size(); ++k) {
      numerics[k].setColumn(feature.numerics[k].column);
      numerics[k].setMean(feature.numerics[k].mean);
      numerics[k].setStddev(feature.numerics[k].stddev);
      numerics[k].setLog1p(feature.numerics[k].log1p);
      numerics[k].setHasDaysUntil(feature.numerics[k].days_until.has_value());
      numerics[k].setDaysUntil(feature.numerics[k].days_until.value_or(0));
    }
    write_texts(out[i].initValues(static_cast<unsigned>(feature.values.size())), feature.values);
    out[i].setOov(static_cast<std::uint8_t>(feature.oov));
    out[i].setBuckets(feature.buckets);
    auto boundaries = out[i].initBoundaries(static_cast<unsigned>(feature.boundaries.size()));
    for (unsigned k = 0; k < boundaries.size(); ++k) boundaries.set(k, feature.boundaries[k]);
    out[i].setWordsMax(feature.ngrams.words_max);
    out[i].setCharactersMin(feature.ngrams.characters_min);
    out[i].setCharactersMax(feature.ngrams.characters_max);
    out[i].setKeepCase(feature.ngrams.keep_case);
    out[i].setHasPadding(feature.padding.has_value());
    out[i].setPadding(feature.padding.value_or(0));
    out[i].setDatePart(static_cast<std::uint8_t>(feature.part));
  }
}

// Vocabularies are the one list that may be long: millions of values, where names and inputs are a
// few thousand at most.
Dataset read_features(const Dataset& below, capnp::List<pipeline::Feature>::Reader in) {
  check_size(in, "features");
  std::vector<FeatureColumn> columns;
  for (auto feature : in) {
    FeatureColumn& made = columns.emplace_back();
    made.kind = read_enum(feature.getKind(), FeatureColumn::Kind::kDatePart, "a kind of feature");
    made.name = read_text(feature.getName());
    made.inputs = read_texts(feature.getInputs());
    check_size(feature.getNumerics(), "numeric inputs");
    for (auto numeric : feature.getNumerics()) {
      made.numerics.push_back({read_text(numeric.getColumn()), numeric.getMean(),
                               numeric.getStddev(), numeric.getLog1p()});
      if (numeric.getHasDaysUntil()) made.numerics.back().days_until = numeric.getDaysUntil();
    }
    made.values = read_texts(feature.getValues(), kVocabularyValuesMax);
    made.oov = read_enum(feature.getOov(), Oov::kLast, "an out-of-vocabulary rule");
    made.buckets = feature.getBuckets();
    if (feature.getBoundaries().size() > kVocabularyValuesMax)
      throw InvalidArgumentError(str("feature \"", made.name, "\" has too many boundaries"));
    for (float boundary : feature.getBoundaries()) made.boundaries.push_back(boundary);
    made.ngrams = {feature.getWordsMax(), feature.getCharactersMin(), feature.getCharactersMax(),
                   feature.getKeepCase()};
    made.part = read_enum(feature.getDatePart(), kDatePartLast, "a part of dates");
    if (feature.getHasPadding()) made.padding = feature.getPadding();
  }
  return below.features(std::move(columns));
}

}  // namespace cairn
