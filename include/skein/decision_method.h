#pragma once

namespace skein {

// The part of the model's answer that is read.
enum class Reading {
  kLetters,     // one token a label: letters, digits, yes and no
  kWords,       // the text of each option
  kSimilarity,  // cosines between the embeddings of the input and of each option
  kLikelihood,  // relevance only: the probability of the query's text behind the document
};

// The text around an input and a question (docs/decisions.md, "Prompts").
enum class PromptForm {
  kChat,      // a user's message in the chat template
  kQuestion,  // plain text that ends with "Answer:"
  kCue,       // plain text that ends with a noun of the question, such as "Sentiment:"
};

// A reading, as requests and options name it.
struct NamedReading {
  Reading reading = Reading::kLetters;
  bool calibrated = false;
  bool permuted = false;

  bool operator==(const NamedReading&) const = default;
};

// How a question is asked and its answer read.
struct DecisionMethod {
  Reading reading = Reading::kLetters;
  PromptForm prompt = PromptForm::kChat;
  bool calibrated = false;  // minus the answer to an input without content
  bool permuted = false;    // averaged over orders of the options
  double temperature = 1;   // (0, 100]: divides log-probabilities before they are normalised
  // [-100, 100]; for predicates and relevance only. It is added to the log-odds of yes before the
  // temperature divides them (Platt 1999, "Probabilistic Outputs for Support Vector Machines").
  double offset = 0;

  bool operator==(const DecisionMethod&) const = default;
};

// The methods for one model, by type of question, for requests that name none.
struct DecisionProfile {
  DecisionMethod predicate;
  DecisionMethod choice;
  DecisionMethod score;
  DecisionMethod relevance;

  bool operator==(const DecisionProfile&) const = default;
};

}  // namespace skein
