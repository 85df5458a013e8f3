import java.io.Serializable;
import java.time.Duration;
import java.util.concurrent.locks.LockSupport;
import org.apache.flink.api.common.eventtime.WatermarkStrategy;
import org.apache.flink.api.common.functions.OpenContext;
import org.apache.flink.api.common.state.ValueState;
import org.apache.flink.api.common.state.ValueStateDescriptor;
import org.apache.flink.api.common.typeinfo.Types;
import org.apache.flink.api.connector.source.util.ratelimit.RateLimiterStrategy;
import org.apache.flink.connector.datagen.source.DataGeneratorSource;
import org.apache.flink.connector.datagen.source.GeneratorFunction;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;
import org.apache.flink.streaming.api.functions.KeyedProcessFunction;
import org.apache.flink.streaming.api.functions.ProcessFunction;
import org.apache.flink.streaming.api.functions.sink.v2.DiscardingSink;
import org.apache.flink.util.Collector;

/**
 * Page views arrive at a steady rate; each is looked up in a service that takes its time, gives two rows, and
 * these are counted by key.
 *
 * <p>Operators wait as for a service instead of computing, so that more instances help on a machine with few
 * cores. With one instance of each, {@code lookup} holds the source back.
 *
 * <p>Arguments: views per second, microseconds a lookup takes, microseconds a count takes.
 */
public final class PageViews {
  private static final int ROWS_A_VIEW = 2;
  private static final int KEYS = 10_007;
  private static final long MOST_OWED_NANOSECONDS = Duration.ofMillis(100).toNanos();

  private PageViews() {}

  public static void main(String[] arguments) throws Exception {
    double viewsPerSecond = Double.parseDouble(arguments[0]);
    StreamExecutionEnvironment job = StreamExecutionEnvironment.getExecutionEnvironment();
    job.setParallelism(1);
    job.disableOperatorChaining();
    job.enableCheckpointing(Duration.ofSeconds(2).toMillis());
    GeneratorFunction<Long, Long> number = index -> index;
    job.fromSource(
            new DataGeneratorSource<>(
                number, Long.MAX_VALUE, RateLimiterStrategy.perSecond(viewsPerSecond), Types.LONG),
            WatermarkStrategy.noWatermarks(),
            "views")
        .rebalance()
        .process(new Lookup(service(arguments[1])))
        .name("lookup")
        .keyBy(row -> row % KEYS)
        .process(new Count(service(arguments[2])))
        .name("count")
        .sinkTo(new DiscardingSink<>())
        .name("out");
    job.execute("page-views");
  }

  private static Service service(String microseconds) {
    return new Service(Long.parseLong(microseconds) * 1_000);
  }

  /** A service that answers after a while: on average after exactly as long as it should, however busy the machine. */
  private static final class Service implements Serializable {
    private final long takesNanoseconds;
    private long owedNanoseconds;

    Service(long takesNanoseconds) {
      this.takesNanoseconds = takesNanoseconds;
    }

    void answer() {
      long start = System.nanoTime();
      long end = start + takesNanoseconds - owedNanoseconds;
      long now = start;
      while (now < end && !Thread.currentThread().isInterrupted()) { // interrupted: the task is being cancelled
        LockSupport.parkNanos(end - now);
        now = System.nanoTime();
      }
      owedNanoseconds = Math.min(now - end, MOST_OWED_NANOSECONDS);
    }
  }

  private static final class Lookup extends ProcessFunction<Long, Long> {
    private final Service service;

    Lookup(Service service) {
      this.service = service;
    }

    @Override
    public void processElement(Long view, Context context, Collector<Long> rows) {
      service.answer();
      for (int row = 0; row < ROWS_A_VIEW; row++) {
        rows.collect(view * ROWS_A_VIEW + row);
      }
    }
  }

  private static final class Count extends KeyedProcessFunction<Long, Long, Long> {
    private final Service service;
    private transient ValueState<Long> seen;

    Count(Service service) {
      this.service = service;
    }

    @Override
    public void open(OpenContext context) {
      seen = getRuntimeContext().getState(new ValueStateDescriptor<>("seen", Types.LONG));
    }

    @Override
    public void processElement(Long row, Context context, Collector<Long> counts) throws Exception {
      service.answer();
      long count = seen.value() == null ? 1 : seen.value() + 1;
      seen.update(count);
      counts.collect(count);
    }
  }
}
