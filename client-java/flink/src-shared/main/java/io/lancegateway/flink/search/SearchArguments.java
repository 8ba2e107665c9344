package io.lancegateway.flink.search;

import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import org.apache.flink.table.api.DataTypes;
import org.apache.flink.table.data.ArrayData;
import org.apache.flink.table.data.StringData;
import org.apache.flink.table.functions.FunctionDefinition;
import org.apache.flink.table.types.DataType;
import org.apache.flink.table.types.inference.ArgumentCount;
import org.apache.flink.table.types.inference.CallContext;
import org.apache.flink.table.types.inference.ConstantArgumentCount;
import org.apache.flink.table.types.inference.InputTypeStrategy;
import org.apache.flink.table.types.inference.Signature;
import org.apache.flink.table.types.logical.LogicalType;
import org.apache.flink.table.types.logical.LogicalTypeFamily;

/** The types of the arguments of a search function. */
final class SearchArguments implements InputTypeStrategy {

    private final Form form;

    SearchArguments(Form form) {
        this.form = form;
    }

    @Override
    public ArgumentCount getArgumentCount() {
        return ConstantArgumentCount.from(form.arguments().size());
    }

    @Override
    public Optional<List<DataType>> inferInputTypes(CallContext call, boolean throwOnFailure) {
        List<DataType> wanted = new ArrayList<>();
        List<DataType> given = call.getArgumentDataTypes();
        for (int i = 0; i < given.size(); i++) {
            LogicalType type = given.get(i).getLogicalType();
            if (isVector(i)) {
                if (!QueryVectors.isVector(type)) {
                    return refuse(call, throwOnFailure, i, "an array of numbers", type);
                }
                wanted.add(given.get(i).bridgedTo(ArrayData.class));
            } else if (i == form.k()) {
                if (!type.is(LogicalTypeFamily.INTEGER_NUMERIC)) {
                    return refuse(call, throwOnFailure, i, "a whole number", type);
                }
                wanted.add(DataTypes.BIGINT());
            } else {
                if (!type.is(LogicalTypeFamily.CHARACTER_STRING)) {
                    return refuse(call, throwOnFailure, i, "a string", type);
                }
                wanted.add(given.get(i).bridgedTo(StringData.class));
            }
        }
        return Optional.of(wanted);
    }

    private boolean isVector(int position) {
        return form.vectors() && position == form.vectorColumn() + 1;
    }

    private Optional<List<DataType>> refuse(
            CallContext call,
            boolean throwOnFailure,
            int position,
            String wanted,
            LogicalType type) {
        String name =
                position < form.k()
                        ? form.arguments().get(position)
                        : position == form.k() ? "k" : String.valueOf(position + 1);
        return call.fail(
                throwOnFailure,
                "The argument '%s' must be %s, and is %s.",
                name,
                wanted,
                type.asSummaryString());
    }

    @Override
    public List<Signature> getExpectedSignatures(FunctionDefinition definition) {
        List<Signature.Argument> arguments = new ArrayList<>();
        for (int i = 0; i < form.arguments().size(); i++) {
            arguments.add(
                    Signature.Argument.of(
                            form.arguments().get(i), isVector(i) ? "ARRAY<number>" : "STRING"));
        }
        List<Signature> signatures = new ArrayList<>();
        signatures.add(Signature.of(arguments));
        arguments = new ArrayList<>(arguments);
        arguments.add(Signature.Argument.of("k", "BIGINT"));
        if (form == Form.VECTOR) {
            signatures.add(Signature.of(arguments));
            arguments = new ArrayList<>(arguments);
            arguments.add(Signature.Argument.of("metric", "STRING"));
        }
        arguments.add(Signature.Argument.ofVarying("option, value", "STRING"));
        signatures.add(Signature.of(arguments));
        return signatures;
    }
}
