//! Connections that count what passes, and know the secret part of a URL.

use crate::traffic::Counts;
use object_store::ClientOptions;
use object_store::client::{
    HttpClient, HttpConnector, HttpError, HttpRequest, HttpResponse, HttpService, ReqwestConnector,
};
use std::pin::Pin;
use std::sync::Arc;

/// Queries by which stores are asked for a list.
const LISTS: [&str; 3] = ["list-type=", "comp=list", "prefix="];

#[derive(Debug)]
pub(super) struct Connector {
    counts: Arc<Counts>,
    query: Option<String>,
}

impl Connector {
    pub(super) fn new(counts: &Arc<Counts>, query: Option<String>) -> Self {
        Self { counts: Arc::clone(counts), query }
    }
}

impl HttpConnector for Connector {
    fn connect(&self, options: &ClientOptions) -> object_store::Result<HttpClient> {
        let inner = ReqwestConnector::default().connect(options)?;
        let (counts, query) = (Arc::clone(&self.counts), self.query.clone());
        Ok(HttpClient::new(Counted { inner, counts, query }))
    }
}

#[derive(Debug)]
struct Counted {
    inner: HttpClient,
    counts: Arc<Counts>,
    query: Option<String>,
}

impl Counted {
    async fn send(&self, mut request: HttpRequest) -> Result<HttpResponse, HttpError> {
        if let (Some(query), None) = (&self.query, request.uri().query())
            && let Ok(uri) = format!("{}?{query}", request.uri()).parse()
        {
            *request.uri_mut() = uri;
        }
        let query = request.uri().query().unwrap_or_default();
        let is_list = self.query.is_none() && LISTS.iter().any(|list| query.contains(list));
        let count = match request.method().as_str() {
            "GET" if !is_list => &self.counts.gets,
            "PUT" => &self.counts.puts,
            _ => &self.counts.others,
        };
        Counts::add(count, 1);
        let answer = self.inner.execute(request).await;
        let is_good = answer.as_ref().is_ok_and(|answer| answer.status().is_success());
        Counts::add(&self.counts.failed, u64::from(!is_good));
        answer
    }
}

impl HttpService for Counted {
    fn call<'s, 'f>(
        &'s self,
        request: HttpRequest,
    ) -> Pin<Box<dyn Future<Output = Result<HttpResponse, HttpError>> + Send + 'f>>
    where
        's: 'f,
        Self: 'f,
    {
        Box::pin(self.send(request))
    }
}
